# A driver for the conformance kit in Ruby, with nothing but Ruby: what docs/binding.md builds, step by step.
#
#   qmodel conformance driver --url redis://localhost:6379/0 -- ruby examples/drivers/ruby_driver.rb

require "json"
require "socket"
require "uri"

DOCS = File.expand_path("../../docs", __dir__)
CATALOGUE = JSON.parse(File.read("#{DOCS}/catalogue.json"))
FORMS = JSON.parse(File.read("#{DOCS}/driver.schema.json"))["$defs"]
FEATURES = CATALOGUE["operations"].keys

# ---- the server

class Server
  def initialize(url)
    uri = URI(url)
    @socket = uri.scheme == "unix" ? UNIXSocket.new(uri.path) : TCPSocket.new(uri.host, uri.port || 6379)
    db = uri.scheme == "unix" ? uri.query.to_s[/db=(\d+)/, 1] : uri.path.delete("/")
    call("AUTH", uri.user.to_s.empty? ? "default" : uri.user, uri.password) if uri.password
    call("SELECT", db) unless db.to_s.empty?
  end

  def call(*words)
    words = words.map { |word| word.to_s.b }
    @socket.write("*#{words.size}\r\n" + words.map { |word| "$#{word.bytesize}\r\n".b + word + "\r\n" }.join)
    reply
  end

  private

  def reply
    kind, rest = @socket.gets.chomp.then { |line| [line[0], line[1..]] }
    case kind
    when "+" then rest
    when "-" then raise rest
    when ":" then rest.to_i
    when "$" then rest == "-1" ? nil : @socket.read(rest.to_i + 2)[0..-3]
    when "*" then rest == "-1" ? nil : Array.new(rest.to_i) { reply }
    end
  end
end

# ---- calls

def words(operation, given, inside: false)
  known = CATALOGUE["operations"][operation]["arguments"].select { |one| given.key?(one["name"]) }
  placed, named = known.partition { |one| one["required"] && !%w[list operations].include?(one["kind"]) }
  named.reject! { |one| one["name"] == "request" } unless inside
  placed.map { |one| word(given[one["name"]]) } + named.flat_map { |one| written(one, given[one["name"]]) }
end

def written(argument, value)
  name = argument["name"]
  case argument["kind"]
  when "list" then value.empty? ? ["no", name] : value.flat_map { |one| [name, word(one)] }
  when "operations"
    value.map { |one| words(argument["of"], one, inside: true) }.flat_map { |inner| [name, inner.size, *inner] }
  else [name, word(value)]
  end
end

def word(value)
  { true => "1", false => "0" }.fetch(value, value.to_s)
end

# ---- replies

def read(form, raw)
  return record(form["$ref"].split("/").last, raw) if form["$ref"]
  return raw && read(form["anyOf"][0], raw) if form["anyOf"]
  case form["type"]
  when "array" then raw.map { |one| read(form["items"], one) }
  when "boolean" then raw == 1
  when "integer" then raw.to_i
  when "number" then raw.to_f
  else raw.dup.force_encoding("UTF-8")
  end
end

def record(name, raw)
  case name
  when "Job" then job(raw)
  when "Stage" then stage(raw)
  when "Event" then event(raw)
  else FORMS[name]["properties"].each_with_index.to_h { |(field, form), at| [field, read(form, raw[at])] }
  end
end

# ---- jobs and events: the records that are no lists

def job(raw)
  jid, state, bytes, apart, tracked, dependencies, dependents = raw
  one, body = head(bytes, CATALOGUE["record"]["fields"])
  size, stop = one["data_size"].to_i, body.bytesize - one["more"].to_i
  two, texts = head(body.byteslice(stop..), CATALOGUE["record"]["more"])
  first, second = two["result_size"].to_i, two["result_size"].to_i + two["progress_size"].to_i
  failure = [two["group"], texts.byteslice(second..), two["failed_at"], two["failed_worker"]]
  known = one.merge(
    "jid" => jid, "state" => state, "tracked" => tracked || 0,
    "dependencies" => dependencies || [], "dependents" => dependents || [],
    "data" => apart.to_s.empty? ? body.byteslice(0, size) : apart, "history" => body.byteslice(size...stop).split("\n"),
    "tags" => two["tags"].to_s.split("\xFF".b), "failure" => two["group"].to_s.empty? ? nil : failure,
    "result" => texts.byteslice(0, first), "progress" => texts.byteslice(first...second),
    "options" => two["options"].to_s.split("\xFF".b).map { |one| one.split("=", 2) }
  )
  FORMS["Job"]["properties"].to_h { |name, form| [name, read(form, known[name])] }
end

def head(bytes, names)
  first, rest = bytes.split("\n".b, 2)
  [names.zip(first.to_s.split("\t".b, -1)).to_h, rest || "".b]
end

def stage(line)
  what, at, *found = line.split("\t", -1)
  if what == "log" || what == "raised"
    group = what == "raised" ? [found.shift] : []
    found = [*group, found.join("\t").gsub(/\\(.)/) { $1 == "n" ? "\n" : $1 }]
  end
  { "what" => what, "at" => at.to_i, "facts" => facts(CATALOGUE["history"][what], found) }
end

def event(raw)
  at, kind, *found = raw[1].split("\t", -1)
  { "seq" => raw[0].to_i, "at" => at.to_i, "event" => kind, "facts" => facts(CATALOGUE["events"][kind], found),
    "epoch" => raw[2].to_i }
end

# The last facts of an event may be left out: those that are there are as many as were found.
def facts(names, found)
  whole = CATALOGUE["whole_facts"]
  found.zip(names).map { |one, name| whole.include?(name) ? one.to_i : one.dup.force_encoding("UTF-8") }
end

# Take apart a reply that is one text.
def unpacked(operation, raw)
  case CATALOGUE["operations"][operation]["reply"]
  when "jobs" then jobs_in(raw)
  when "completed_and_popped" then raw.split("\n", 2).then { |state, rest| [state, jobs_in(rest)] }
  else raw
  end
end

def jobs_in(raw)
  found = []
  until raw.empty?
    line, rest = raw.split("\n", 2)
    jid, state, size = line.split("\t")
    found << [jid, state, rest.byteslice(0, size.to_i)]
    raw = rest.byteslice(size.to_i..)
  end
  found
end

# ---- the driver

def execute(server, prefix, asked)
  given = asked.except("seq", "cmd", "op", "now")
  head = ["FCALL", "#{CATALOGUE["library"]}_#{asked["op"]}", "1", prefix, asked["now"], given["request"]]
  found = server.call(*head, *words(asked["op"], given))
  return { reply: read(FORMS["#{asked["op"]}_reply"], unpacked(asked["op"], found)) } unless found.is_a?(Array)
  return { refusal: found.map { |one| one.to_s.force_encoding("UTF-8") } } if found[0] != "OK"
  { reply: read(FORMS["#{asked["op"]}_reply"], found[1]) }
rescue => error
  { crash: error.full_message(highlight: false) }
end

server, prefix = nil
$stdout.sync = true
$stdin.each_line do |line|
  asked = JSON.parse(line)
  answer = { ok: true }
  case asked["cmd"]
  when "hello" then answer = { protocol: 1, binding: "qmodel-ruby", version: "0.1", features: FEATURES }
  when "reset" then server, prefix = server || Server.new(asked["url"]), asked["prefix"]
  when "op" then answer = execute(server, prefix, asked)
  end
  puts JSON.generate({ seq: asked["seq"] }.merge(answer))
end
