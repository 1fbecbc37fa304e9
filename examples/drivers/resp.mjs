// A client of Redis: one connection, one command at a time, replies as bytes. Any other client would do.

import net from "node:net";

export class Server {
  constructor(url) {
    const { protocol, hostname, port, pathname, searchParams, username, password } = new URL(url);
    const unix = protocol === "unix:";
    this.socket = unix ? net.connect(pathname) : net.connect(Number(port || 6379), hostname);
    this.buffer = Buffer.alloc(0);
    this.socket.on("data", (data) => {
      this.buffer = Buffer.concat([this.buffer, data]);
      const found = parse(this.buffer, 0);
      if (found) [this.buffer] = [this.buffer.subarray(found[1]), this.done(found[0])];
    });
    if (password) this.call("AUTH", decodeURIComponent(username) || "default", decodeURIComponent(password));
    this.ready = this.call("SELECT", unix ? searchParams.get("db") ?? "0" : pathname.slice(1) || "0");
  }
  call(...words) {
    const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
    this.socket.write(`*${words.length}\r\n${parts.join("")}`);
    return new Promise((done) => (this.done = done));
  }
}

function parse(bytes, at) { // a reply and where the next one begins, or nothing while it is incomplete
  const end = bytes.indexOf("\r\n", at);
  if (end < 0) return;
  const [head, count] = [bytes.toString("utf8", at + 1, end), Number(bytes.toString("latin1", at + 1, end))];
  let next = end + 2;
  switch (String.fromCharCode(bytes[at])) {
    case "+": return [head, next];
    case "-": return [new Error(head), next];
    case ":": return [count, next];
    case "$": if (count < 0) return [null, next];
      return bytes.length < next + count + 2 ? undefined : [bytes.subarray(next, next + count), next + count + 2];
  }
  const list = [];
  for (let one; list.length < count; [, next] = one) if (!(one = parse(bytes, next))) return; else list.push(one[0]);
  return [count < 0 ? null : list, next];
}
