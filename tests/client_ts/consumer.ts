// What somebody who has installed the package writes: checked by tsc, never run.
import { Commonplace, CommonplaceError, type Memory, type Schemas } from "commonplace-memory";

export async function use(client: Commonplace): Promise<Memory[]> {
  const kept: Schemas["RememberResponse"] = await client.remember({ agent_id: "a", type: "semantic", content: "x" });
  const found = await client.recall({ agent_id: "a", query: "x", k: 3 });
  const first: number | undefined = found.results[0]?.score;
  await client.call("kg_query", { query: { agent_id: "a", subject: String(first ?? kept.id) } });
  const file: string = await client.call("export", { query: { agent_id: "a" } });
  const report: Schemas["ImportResponse"] = await client.call("import", { query: { dry_run: true }, body: file });
  report.written;
  const all: Memory[] = [];
  for await (const memory of client.list({ agent_id: "a" })) all.push(memory);

  // @ts-expect-error a type that there is not
  await client.remember({ agent_id: "a", type: "vague", content: "x" });
  // @ts-expect-error what must be given
  await client.recall({ agent_id: "a" });
  // @ts-expect-error an operation that there is not
  await client.call("remembr", {});
  // @ts-expect-error a query parameter that must be given
  await client.call("kg_query", {});
  // @ts-expect-error an operation without a body
  await client.call("health", { body: {} });
  // @ts-expect-error a file that is no text
  await client.call("import", { body: {} });
  // @ts-expect-error a field that an answer does not have
  found.hits;
  return all;
}

export function code(error: unknown): string {
  return error instanceof CommonplaceError && error.code === "rate_limited" ? String(error.retryAfter) : "";
}
