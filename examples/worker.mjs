// A worker in JavaScript, over HTTP, without any package:
//
//   qmodel http --writable
//   node worker.mjs http://127.0.0.1:8000 [jobs]
//
// It renews the lease of a job while it runs, stops when it is called off or has lost it, and ends at SIGTERM when the
// job at hand has ended; or after so many jobs.
const [api = 'http://127.0.0.1:8000', most = Infinity] = process.argv.slice(2)
const worker = `node-${process.pid}`

const performs = {
  sum: async ({ numbers }) => numbers.reduce((a, b) => a + b, 0),
  broken: async () => { throw new TypeError('nobody can do this') }
}

async function ask (path, body = {}, headers = {}) {
  for (;;) {
    try {
      const answer = await fetch(api + path, {
        method: 'POST', body: JSON.stringify(body), headers: { 'Content-Type': 'application/json', ...headers }
      })
      if (answer.status < 500 && answer.status !== 429) return { status: answer.status, ...await answer.json() }
    } catch { /* the server is away */ }
    await new Promise(resolve => setTimeout(resolve, 1000))
  }
}

async function perform (job) {
  const at = `/v1/jobs/${encodeURIComponent(job.jid)}`
  const token = job.token
  const stop = new AbortController()
  const renewal = setInterval(async () => {
    const lease = await ask(`${at}/heartbeat`, { token })
    if (lease.status !== 200 || lease.reply.revoked) stop.abort()
  }, (job.expires_at - job.popped_at) / 3)
  try {
    const result = await performs[job.klass](job.data ?? {}, stop.signal)
    await ask(`${at}/complete`, { token, result })
  } catch (error) {
    // it is tried again later, as often as its retries say, and then fails in the group
    const group = error.name
    await ask(`${at}/retry`, { token, delay_ms: 100, group, message: String(error.stack) })
  } finally {
    clearInterval(renewal)
  }
}

let going = true
process.on('SIGTERM', () => { going = false })
for (let done = 0, turn = 0; going && done < most;) {
  const key = `${worker}-${turn++}` // an answer that was lost is given again
  const found = await ask('/v1/queues/sums/pop', { worker, timeout: 20 }, { 'Idempotency-Key': key })
  for (const job of found.jobs ?? []) {
    await perform(job)
    done++
  }
}
