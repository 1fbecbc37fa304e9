// A driver for the conformance kit in Node, with nothing but Node: a binding for every operation, from the documents.
//   qmodel conformance driver --url redis://localhost:6379/0 -- node examples/drivers/node_driver.mjs

import { readFileSync } from "node:fs";
import readline from "node:readline";
import { Server } from "./resp.mjs";
const made = (name) => JSON.parse(readFileSync(new URL(`../../docs/${name}`, import.meta.url)));
const { operations, events, history, whole_facts, record, library } = made("catalogue.json");
const { $defs } = made("driver.schema.json");

// ---- calls
const word = (value) => (value === true ? "1" : value === false ? "0" : String(value));
const placed = (one) => one.required && one.kind !== "list" && one.kind !== "operations";

function words(name, given, inside) { // the arguments of an operation, or of one inside another
  const known = operations[name].arguments.filter((one) => one.name in given && (inside || one.name !== "request"));
  const named = known.filter((one) => !placed(one)).flatMap((one) => {
    if (!Array.isArray(given[one.name])) return [one.name, word(given[one.name])];
    const inner = one.kind === "list" ? [] : given[one.name].map((value) => words(one.of, value, true));
    if (one.kind !== "list") return inner.flatMap((found) => [one.name, String(found.length), ...found]);
    return given[one.name].length ? given[one.name].flatMap((value) => [one.name, word(value)]) : ["no", one.name];
  });
  return [...known.filter(placed).map((one) => word(given[one.name])), ...named];
}

// ---- replies
// The last facts of an event may be left out: those that are there are as many as were found.
const facts = (names, found) => found.map((fact, at) => (whole_facts.includes(names[at]) ? Number(fact) : fact));
const records = { Job: job, Stage: stage, Event: event };
const utf8 = (latin1) => Buffer.from(latin1, "latin1").toString();

function read(schema, raw) { // a reply as its schema has it: the parts of a record stand in the order of its fields
  const name = schema.$ref?.split("/").pop();
  if (name) return (records[name] ?? ((all) => fields($defs[name], all)))(raw);
  if (schema.anyOf) return raw == null ? null : read(schema.anyOf[0], raw);
  if (schema.type === "array") return raw.map((one) => read(schema.items, one));
  return { string: String, integer: Number, number: Number, boolean: (flag) => flag === 1 }[schema.type](raw);
}

const fields = ({ properties }, raw) =>
  Object.fromEntries(Object.entries(properties).map(([name, schema], at) => [name, read(schema, raw[at])]));

function event([seq, text, epoch]) {
  const [at, kind, ...told] = String(text).split("\t");
  return { seq: Number(seq), at: Number(at), event: kind, facts: facts(events[kind], told), epoch: Number(epoch) };
}

function head(bytes, names) { // the fields at the beginning of a part of a record, and what follows them
  const end = bytes.indexOf("\n");
  const found = end < 0 ? [] : bytes.toString("latin1", 0, end).split("\t");
  return [Object.fromEntries(names.map((name, at) => [name, found[at] ?? ""])), bytes.subarray(end + 1)];
}

function job([jid, state, bytes, apart = "", tracked = 0, dependencies = [], dependents = []]) {
  const [one, body] = head(bytes, record.fields);
  const [size, stop] = [Number(one.data_size), body.length - Number(one.more)];
  const [two, texts] = head(body.subarray(stop), record.more);
  const [first, second] = [Number(two.result_size), Number(two.result_size) + Number(two.progress_size)];
  const failure = [utf8(two.group), texts.subarray(second), two.failed_at, utf8(two.failed_worker)];
  const known = {
    ...one, jid, state, tracked, dependencies, dependents, data: apart.length ? apart : body.subarray(0, size),
    klass: utf8(one.klass), queue: utf8(one.queue), worker: utf8(one.worker), failure: two.group ? failure : null,
    tags: two.tags ? two.tags.split("\xff").map(utf8) : [],
    options: two.options ? two.options.split("\xff").map((one) => utf8(one).split(/=(.*)/s).slice(0, 2)) : [],
    result: texts.subarray(0, first), progress: texts.subarray(first, second),
    history: String(body.subarray(size, stop)).split("\n").slice(0, -1),
  };
  return fields($defs.Job, Object.keys($defs.Job.properties).map((name) => known[name]));
}

function stage(line) {
  const [what, when, ...found] = line.split("\t");
  const group = what === "raised" ? [found.shift()] : [];
  const message = found.join("\t").replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
  const told = what === "log" || what === "raised";
  return { what, at: Number(when), facts: told ? [...group, message] : facts(history[what], found) };
}

function unpacked(shape, raw) { // a reply that is one text: jobs, perhaps after a state
  if (!["jobs", "completed_and_popped"].includes(shape)) return raw;
  const stop = raw.indexOf("\n"), [one, state, size] = String(raw.subarray(0, stop)).split("\t"), rest = raw.subarray(stop + 1);
  if (!size) return one ? [one, unpacked("jobs", rest)] : [];
  return [[one, state, rest.subarray(0, +size)], ...unpacked("jobs", rest.subarray(+size))];
}

// ---- the driver

let server, url, prefix;
async function execute({ op, now, seq, cmd, ...given }) {
  const head = ["FCALL", `${library}_${op}`, "1", prefix, word(now ?? ""), given.request ?? ""];
  const called = await server.call(...head, ...words(op, given));
  if (called instanceof Error) return { crash: called.message };
  if (!Array.isArray(called)) return { reply: read($defs[`${op}_reply`], unpacked(operations[op].reply, called)) };
  if (String(called[0]) !== "OK") return { refusal: called.map(String) };
  return { reply: read($defs[`${op}_reply`], called[1] ?? null) };
}

async function answer(asked) {
  const features = Object.keys(operations);
  if (asked.cmd === "hello") return { protocol: 1, binding: "node-example", version: "1", features };
  if (asked.cmd === "op") return execute(asked);
  if (asked.cmd === "reset" && asked.url !== url) await (server = new Server((url = asked.url))).ready;
  prefix = asked.prefix;
  return { ok: true };
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  process.stdout.write(`${JSON.stringify({ seq: asked.seq, ...(await answer(asked)) })}\n`);
}
process.exit(0); // the connection would keep it alive
