// Against a real server: COMMONPLACE_URL says where it is, COMMONPLACE_TOKEN and COMMONPLACE_READER who asks.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

const { Commonplace, CommonplaceError } = await import(process.env.COMMONPLACE_CLIENT ?? "commonplace-memory");

const { COMMONPLACE_URL: url, COMMONPLACE_TOKEN: token, COMMONPLACE_READER: reader } = process.env;
const agent_id = "client-ts";
const memory = new Commonplace({ url, token });

const refused = (code, status, says) => (error) => {
  assert.ok(error instanceof CommonplaceError, String(error));
  assert.equal(error.code, code);
  assert.equal(error.status, status);
  assert.match(error.message, says);
  return true;
};

test("a memory is written, found, changed, listed and forgotten", async () => {
  const kept = await memory.remember({ agent_id, type: "semantic", content: "Alice is allergic to peanuts" });
  const found = await memory.recall({ agent_id, query: "peanuts", k: 3 });
  assert.equal(found.results[0].id, kept.id);
  assert.equal((await memory.get(kept.id, { agent_id })).content, "Alice is allergic to peanuts");
  await memory.update(kept.id, { agent_id, content: "Alice is allergic to peanuts and cashews" });
  assert.equal((await memory.history(kept.id, { agent_id })).versions.length, 2);
  const other = await memory.remember({ agent_id, type: "semantic", content: "Alice may not have peanuts" });
  await memory.merge({ agent_id, canonical: kept.id, duplicates: [other.id] });
  assert.deepEqual((await memory.forget({ agent_id, ids: [kept.id] })).forgotten_ids, [kept.id]);
  await assert.rejects(memory.get(kept.id, { agent_id }), refused("not_found", 404, /./));
});

test("a list goes through its pages", async () => {
  const agent = { agent_id: `client-ts-pages-${process.pid}` };
  for (let n = 0; n < 5; n++) await memory.remember({ ...agent, type: "semantic", content: `note ${n}` });
  const contents = [];
  for await (const each of memory.list({ ...agent, limit: 2 })) contents.push(each.content);
  assert.deepEqual(contents, [4, 3, 2, 1, 0].map((n) => `note ${n}`));
});

test("every operation can be called by its name, of every protocol", async () => {
  assert.equal((await memory.call("health", {})).status, "ok");
  await memory.call("kg_assert", { body: { agent_id, subject: "Alice", predicate: "likes", object: "tea" } });
  const stated = await memory.call("kg_query", { query: { agent_id, subject: "Alice" } });
  assert.equal(stated.triples[0].object, "tea");
  const record = { type: "lesson", title: "Tea", content: "Alice likes tea", agent: agent_id, id: "a/b c" };
  await memory.call("amp_store", { body: { record } });
  assert.equal((await memory.call("amp_get", { path: { id: "a/b c" }, query: { agent: agent_id } })).record.title, "Tea");
});

test("a file is carried away and taken in as it is", async () => {
  const agent = { agent_id: `client-ts-file-${process.pid}` };
  await memory.remember({ ...agent, type: "semantic", content: "Alice likes tea" });
  const file = await memory.call("export", { query: agent });
  assert.deepEqual(file.trimEnd().split("\n").map((line) => JSON.parse(line).record), ["header", "memory", "manifest"]);
  const report = await memory.call("import", { query: { dry_run: true }, body: file });
  assert.deepEqual([report.known, report.written], [{ memory: 1 }, {}]);
  const half = memory.call("import", { body: file.slice(0, -10) });
  await assert.rejects(half, refused("validation_error", 400, /line 3/));
});

test("a refusal says what the server said", async () => {
  await assert.rejects(memory.recall({ agent_id, query: "" }), refused("validation_error", 400, /query/));
  const guest = new Commonplace({ url, token: async () => reader });
  await assert.rejects(guest.remember({ agent_id, type: "semantic", content: "x" }), (error) => {
    refused("forbidden", 403, /needs the role writer/)(error);
    assert.ok(error.requestId);
    return true;
  });
  await assert.rejects(new Commonplace({ url, token: "wrong" }).call("health", {}), refused("unauthenticated", 401, /./));
});

test("an id that would lead to another route is refused before anything is sent", async () => {
  const sent = [];
  const fetch = async (to) => {
    sent.push(new URL(to).pathname);
    return new Response("{}");
  };
  const watched = new Commonplace({ url, token, fetch });
  for (const id of [".", "..", ""]) {
    const asked = [
      () => watched.get(id, { agent_id }),
      () => watched.update(id, { agent_id, content: "x" }),
      () => watched.history(id, { agent_id }),
      () => watched.call("revoke_learned", { path: { id } }),
      () => watched.call("amp_delete", { path: { id }, query: { agent: agent_id } }),
    ];
    for (const each of asked) await assert.rejects(each(), refused("validation_error", 0, /^id cannot be/));
  }
  assert.deepEqual(sent, []);
  for (const id of ["...", "../x", "%2e%2e", "..%2f", ".\\.."]) {
    await watched.get(id, { agent_id });
    assert.ok(sent.pop().endsWith(`/v0/memories/${encodeURIComponent(id)}`), id);
  }
});

test("a server that is not ours, redirects, or is not there is a failure in our words", async () => {
  const other = createServer((request, response) => {
    if (request.url.startsWith("/moved")) response.writeHead(307, { Location: `${url}/v0/health` }).end();
    else if (request.url.startsWith("/html")) response.writeHead(200).end("<html>");
    else if (request.url.startsWith("/busy")) {
      const error = { code: "rate_limited", message: "too many" };
      response.writeHead(429, { "Retry-After": "7" }).end(JSON.stringify({ error }));
    } // and everything else is never answered
  });
  await new Promise((listening) => other.listen(0, "127.0.0.1", listening));
  const base = `http://127.0.0.1:${other.address().port}`;
  try {
    const at = (path, more) => new Commonplace({ url: `${base}${path}`, token, ...more }).call("health", {});
    await assert.rejects(at("/moved"), refused("unavailable", 0, /could not be reached/));
    await assert.rejects(at("/html"), refused("unavailable", 200, /not ours/));
    await assert.rejects(at("/busy"), (error) => refused("rate_limited", 429, /many/)(error) && error.retryAfter === 7);
    await assert.rejects(at("/never", { timeout: 50 }), refused("unavailable", 0, /no answer within 50 ms/));
    const gone = new AbortController();
    const waiting = new Commonplace({ url: `${base}/never` }).call("health", {}, { signal: gone.signal });
    gone.abort();
    await assert.rejects(waiting, { name: "AbortError" });
  } finally {
    other.closeAllConnections();
    await new Promise((closed) => other.close(closed));
  }
  await assert.rejects(new Commonplace({ url: base }).call("health", {}), refused("unavailable", 0, /could not be reached/));
});
