/** Client of a Commonplace server, over fetch: every operation of its OpenAPI by name, and methods for those of every day. */

import { operations as routes } from "./operations.js";
import type { components, operations } from "./schema.js";

export type { components, operations, paths } from "./schema.js";

/** The documents that travel, by name: `Schemas["RecallResponse"]`. */
export type Schemas = components["schemas"];
export type Memory = Schemas["Memory"];

/** The name of an operation, as the server's OpenAPI has it. */
export type OperationName = keyof typeof routes & keyof operations;

type Content<T> = T extends { content: { "application/json": infer Document } }
  ? Document
  : T extends { content: { "application/x-ndjson": infer File } }
    ? File
    : undefined;
type Good = 200 | 201 | 202 | 204;

/** What an operation answers. */
export type Answer<Name extends OperationName> = {
  [Status in keyof operations[Name]["responses"]]: Status extends Good ? Content<operations[Name]["responses"][Status]> : never;
}[keyof operations[Name]["responses"]];

type Given<Key extends string, Value> = [Value] extends [never]
  ? { [K in Key]?: never }
  : Record<string, never> extends Value
    ? { [K in Key]?: Value }
    : { [K in Key]: Value };
type Parameters_<Name extends OperationName, Place extends "path" | "query"> = Exclude<
  operations[Name]["parameters"][Place],
  undefined
>;
type Body<Name extends OperationName> = operations[Name] extends {
  requestBody: { content: infer Types };
}
  ? Types[keyof Types]
  : never;

/** What an operation takes: what is put into its path, its query parameters and its body, each where it has them. */
export type Input<Name extends OperationName> = Given<"path", Parameters_<Name, "path">> &
  Given<"query", Parameters_<Name, "query">> &
  Given<"body", Body<Name>>;

export interface ClientOptions {
  /** Where the server is, with the prefix if it has one; http://127.0.0.1:8420 by default. */
  url?: string | URL;
  /** Sent with every request; a function is asked each time, for tokens that expire. */
  token?: string | (() => string | Promise<string>);
  /** Milliseconds that a request may take; 60,000 by default. */
  timeout?: number;
  /** In the place of the global one. */
  fetch?: typeof globalThis.fetch;
  headers?: Record<string, string>;
}

export interface CallOptions {
  signal?: AbortSignal;
}

type ErrorCode = Schemas["ErrorResponse"]["error"]["code"];

/** What the server refused, or could not do. */
export class CommonplaceError extends Error {
  override readonly name = "CommonplaceError";

  constructor(
    message: string,
    /** What kind of fault it is; "unavailable" when nobody answered as our server does. */
    readonly code: ErrorCode,
    /** Of HTTP; 0 when there was no answer. */
    readonly status: number,
    /** Facts that a program can use, such as the field at fault. */
    readonly details: Readonly<Record<string, unknown>> = {},
    /** The id under which the server's log has it. */
    readonly requestId: string | null = null,
    /** Seconds after which to try again, where the server says so. */
    readonly retryAfter: number | null = null,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export class Commonplace {
  readonly url: string;
  readonly #token: ClientOptions["token"];
  readonly #timeout: number;
  readonly #fetch: typeof globalThis.fetch;
  readonly #headers: Record<string, string>;

  constructor(options: ClientOptions = {}) {
    this.url = String(options.url ?? "http://127.0.0.1:8420").replace(/\/+$/, "");
    this.#token = options.token;
    this.#timeout = options.timeout ?? 60_000;
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.#headers = options.headers ?? {};
  }

  /** Any operation by its name: `client.call("kg_query", { query: { agent_id: "assistant", subject: "Alice" } })`. */
  async call<Name extends OperationName>(name: Name, input: Input<Name>, options: CallOptions = {}): Promise<Answer<Name>> {
    const [method, template] = routes[name];
    const { path = {}, query = {}, body } = input as {
      path?: Record<string, unknown>;
      query?: Record<string, unknown>;
      body?: unknown;
    };
    const own = template.replace(/\{(\w+)\}/g, (_, key: string) => segment(key, String(path[key])));
    const asked = new URLSearchParams();
    for (const [key, value] of Object.entries(query)) {
      if (value !== undefined) asked.set(key, Array.isArray(value) ? value.join(",") : String(value));
    }
    const text = asked.size > 0 ? `?${asked}` : "";
    return (await this.#send(method, `${this.url}${own}${text}`, body, options)) as Answer<Name>;
  }

  remember(body: Body<"remember">, options?: CallOptions) {
    return this.call("remember", { body }, options);
  }

  recall(body: Body<"recall">, options?: CallOptions) {
    return this.call("recall", { body }, options);
  }

  forget(body: Body<"forget">, options?: CallOptions) {
    return this.call("forget", { body }, options);
  }

  merge(body: Body<"merge">, options?: CallOptions) {
    return this.call("merge", { body }, options);
  }

  expire(body: Body<"expire">, options?: CallOptions) {
    return this.call("expire", { body }, options);
  }

  get(id: string, query: Parameters_<"get", "query">, options?: CallOptions) {
    return this.call("get", { path: { id }, query }, options);
  }

  update(id: string, body: Body<"update">, options?: CallOptions) {
    return this.call("update", { path: { id }, body }, options);
  }

  history(id: string, query: Parameters_<"history", "query">, options?: CallOptions) {
    return this.call("history", { path: { id }, query }, options);
  }

  /** Every memory of an agent, newest first, page by page as they are needed. */
  async *list(query: Parameters_<"list", "query">, options?: CallOptions): AsyncGenerator<Memory, void, undefined> {
    let cursor = query.cursor;
    do {
      const page = await this.call("list", { query: { ...query, ...(cursor ? { cursor } : {}) } }, options);
      yield* page.memories;
      cursor = page.next_cursor ?? undefined;
    } while (cursor);
  }

  async #send(method: string, url: string, body: unknown, options: CallOptions): Promise<unknown> {
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    const headers: Record<string, string> = { Accept: "application/json", ...this.#headers };
    if (token) headers.Authorization = `Bearer ${token}`;
    // Documents are objects or lists: a text is a file, such as an export.
    const isFile = typeof body === "string";
    if (body !== undefined) headers["Content-Type"] = isFile ? NDJSON : "application/json";
    const limit = AbortSignal.timeout(this.#timeout);
    const signal = options.signal ? AbortSignal.any([limit, options.signal]) : limit;
    let answer: Response;
    let text: string;
    try {
      // A redirect would carry the token to an address that nobody named.
      const sent = body === undefined ? {} : { body: isFile ? body : JSON.stringify(body) };
      answer = await this.#fetch(url, { method, headers, signal, redirect: "error", ...sent });
      text = await answer.text();
    } catch (cause) {
      if (options.signal?.aborted) throw cause;
      const why = limit.aborted ? `no answer within ${this.#timeout} ms` : String((cause as Error).message);
      throw new CommonplaceError(`${this.url} could not be reached: ${why}`, "unavailable", 0, {}, null, null, { cause });
    }
    if (answer.ok && answer.headers.get("content-type")?.startsWith(NDJSON)) return text;
    const document = parsed(text);
    if (answer.ok && document !== NOT_JSON) return document;
    throw refusal(answer, document, this.url);
  }
}

/** A value in a path. fetch resolves "." and "..", however they are written, and would ask for something else. */
function segment(key: string, value: string): string {
  if (value === "" || value === "." || value === "..") {
    throw new CommonplaceError(`${key} cannot be ${JSON.stringify(value)}`, "validation_error", 0, { field: key });
  }
  return encodeURIComponent(value);
}

const NDJSON = "application/x-ndjson";
const NOT_JSON = Symbol("not JSON");

function parsed(text: string): unknown {
  if (!text) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return NOT_JSON;
  }
}

function refusal(answer: Response, document: unknown, url: string): CommonplaceError {
  const id = answer.headers.get("x-request-id");
  const after = Number(answer.headers.get("retry-after") ?? "") || null;
  const fault = (document as { error?: { code?: ErrorCode; message?: string; details?: Record<string, unknown> } })?.error;
  if (fault?.code && fault.message) {
    return new CommonplaceError(fault.message, fault.code, answer.status, fault.details ?? {}, id, after);
  }
  const said = `${url} answered ${answer.status} with something that is not ours`;
  return new CommonplaceError(said, "unavailable", answer.status, {}, id, after);
}
