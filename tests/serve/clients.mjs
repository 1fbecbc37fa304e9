// Sessions of two clients for Node: connect, call, wait, listen, several in one step. The URL of the server is the argument.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const [url, modules] = process.argv.slice(2)
const require = createRequire(modules + '/')
const { createClient } = require('redis')
const Redis = require('ioredis')

const call = (name, ...words) => ['FCALL', `qmodel_v1_${name}`, '1', 'ql:', '', '', ...words]

async function nodeRedis(RESP) {
  const client = createClient({ url, RESP, name: 'node' })
  await client.connect()
  assert.equal(await client.ping(), 'PONG')
  await client.flushDb()
  assert.deepEqual(await client.sendCommand(call('put', 'q', 'é1', 'K', '{}')), ['BAD_ARGUMENT', 'put', 'jid'])
  assert.equal(await client.sendCommand(call('put', 'q', 'a', 'K', '{"to":"é"}')), 'a')
  const replies = await Promise.all([1, 2, 3].map(() => client.sendCommand(call('length', 'q'))))
  assert.deepEqual(replies, [1, 1, 1])
  assert.equal((await client.multi().addCommand(call('length', 'q')).ping().exec()).length, 2)
  const [jid, state] = (await client.sendCommand(call('pop', 'q', 'w'))).split('\t')
  assert.deepEqual([jid, state], ['a', 'running'])
  const listening = client.duplicate()
  await listening.connect()
  const heard = new Promise((resolve) => listening.subscribe('news', resolve))
  while (!(await client.publish('news', 'hello')));
  assert.equal(await heard, 'hello')
  await assert.rejects(client.set('a', '1'), /unknown command/)
  await listening.close()
  await client.close()
}

async function ioredis() {
  const client = new Redis(url, { lazyConnect: true, connectionName: 'io' })
  await client.connect()
  await client.flushdb()
  assert.equal(await client.call(...call('put', 'q', 'b', 'K', '{}')), 'b')
  const piped = await client.pipeline().call(...call('length', 'q')).ping().exec()
  assert.deepEqual(piped, [[null, 1], [null, 'PONG']])
  assert.equal((await client.multi().ping().ping().exec()).length, 2)
  await client.call(...call('pop', 'q', 'w'))
  await client.call(...call('pop', 'q', 'w', 'wait', '1'))
  const waiting = client.duplicate()
  const woken = waiting.blpop('ql:q:q-wake', 10)
  await client.call(...call('put', 'q', 'c', 'K', '{}'))
  assert.deepEqual(await woken, ['ql:q:q-wake', '1'])
  const digest = await client.script('LOAD', 'local Qless = {}\nlocal QlessAPI = {} -- KEYS\n')
  assert.equal(await client.evalsha(digest, 0, 'length', '5', 'q'), 2)
  await assert.rejects(client.evalsha('0'.repeat(40), 0), /NOSCRIPT/)
  waiting.disconnect()
  client.disconnect()
}

await nodeRedis(2)
await nodeRedis(3)
await ioredis()
console.log('well')
