# A session of qless's Ruby clients: puts, works, completes, and more.
#
#   ruby -I <folder of the client> session_ruby.rb qless|reqless <url of a server> [serve]
#
# With `serve` the server has no sorted sets, which these clients count by themselves to tell the length of a queue.

name, url, kind = ARGV
require name

def check(what, found, wanted)
  raise "#{what}: #{found.inspect}, not #{wanted.inspect}" unless found == wanted
end

class Send
  class << self
    attr_reader :sent
  end

  def self.perform(job)
    @sent = job.data
  end
end

package = name == 'qless' ? Qless : Reqless
client = package::Client.new(url: url)
queue = client.queues['emails']

jid = queue.put(Send, { to: 'ada' }, priority: 3, tags: ['welcome'])
client.track(jid)
check('waiting', queue.counts['waiting'], 1)
check('length', queue.length, 1) unless kind == 'serve'
job = queue.pop
check('the job', [job.jid, job.data, job.tags, job.state], [jid, { 'to' => 'ada' }, ['welcome'], 'running'])
check('a heartbeat', job.heartbeat > Time.now.to_i, true)
job.perform
check('what was performed', Send.sent, { 'to' => 'ada' })
check('a completion', job.complete, 'complete')
check('the complete jobs', client.jobs.complete, [jid])
check('the tracked jobs', client.jobs.tracked['jobs'].map(&:jid), [jid])
check('an unknown job', client.jobs['unknown'], nil)

jid = queue.put(Send, {}, retries: 1)
check('a retry', queue.pop.retry, 0)
job = queue.pop
check('a failure', job.fail('smtp', 'no route'), jid)
check('the groups', client.jobs.failed, { 'smtp' => 1 })
begin
  job.complete
  raise 'a failed job was completed'
rescue package::Job::CantCompleteError => e
  check('the sentence', e.message, "Complete(): Job #{jid} is not currently running: failed")
end
job.requeue('emails')
check('a step to the next queue', queue.pop.complete('archive', delay: 5), 'scheduled')
check('its queue', client.jobs[jid].queue_name, 'archive')

letters = client.queues['letters']
letters.put(Send, {}, jid: 'parent')
letters.put(Send, {}, jid: 'child', depends: ['parent'])
child = client.jobs['child']
check('dependencies', [child.state, child.dependencies, letters.jobs.depends], ['depends', ['parent'], ['child']])
child.undepend('parent')
%w[parent child].each { |one| client.jobs[one].tag('urgent') }
check('tags', client.tags, ['urgent'])
letters.pause
check('a pause', [letters.paused?, letters.pop], [true, nil])
letters.unpause
check('the jobs', letters.pop(5).map(&:jid).sort, %w[child parent])
client.jobs['child'].log('so far', 'so' => 'good')
check('the log', client.jobs['child'].raw_queue_history.last['so'], 'good')
client.jobs['child'].timeout
check('a timeout', client.jobs['child'].state, 'stalled')
client.jobs['child'].cancel
check('a canceled job', client.jobs['child'], nil)
hourly = client.queues['hourly']
hourly.recur(Send, {}, 3600, jid: 'clock')
check('the recurring jobs', hourly.jobs.recurring, ['clock'])
check('a run', hourly.pop.jid, 'clock-1')
check('where it comes from', client.jobs['clock-1'].spawned_from_jid, 'clock')
clock = client.jobs['clock']
check('the recurring job', [clock.interval, clock.count], [3600, 1])
clock.priority = 7
check('its priority', client.jobs['clock'].priority, 7)
clock.cancel
check('a canceled recurring job', client.jobs['clock'], nil)

client.config['heartbeat'] = 30
check('the configuration', client.config['heartbeat'].to_s, '30')
puts 'done'
