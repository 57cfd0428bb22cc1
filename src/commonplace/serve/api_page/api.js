// The API as a page: drawn from openapi.json, with a form for every operation that calls this very server.
// All addresses are relative, so that the page works below whatever prefix a proxy gives it. Everything that
// comes from the server is put in as text, never as markup.
"use strict";

const SHOWN_CHARS = 200000; // of an answer
const EXAMPLES = {
  agent_id: "default", agent: "default", user_id: "alice", content: "Alice is allergic to peanuts",
  query: "what should I not cook for Alice?", subject: "Alice", predicate: "works_at", object: "Acme", title: "Allergies",
};

const make = (name, props = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(props)) key in node ? (node[key] = value) : node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
};

const follow = (doc, schema) => {
  while (schema && schema.$ref) schema = schema.$ref.slice(2).split("/").reduce((node, key) => node[key], doc);
  return schema || {};
};

const kind = (doc, schema) => {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.$ref) return kind(doc, follow(doc, schema));
  const choice = schema.oneOf || schema.anyOf;
  if (choice) return [...new Set(choice.map((each) => kind(doc, each)))].join(" | ");
  const type = [].concat(schema.type || "any").join(" | ");
  return type === "array" && schema.items ? `array of ${kind(doc, schema.items)}` : type;
};

const limits = (schema) => {
  const said = [];
  if (schema.default !== undefined) said.push(`default ${JSON.stringify(schema.default)}`);
  if (schema.minimum !== undefined && schema.maximum !== undefined && schema.maximum < 1e9)
    said.push(`${schema.minimum} to ${schema.maximum}`);
  if (schema.maxLength !== undefined) said.push(`at most ${schema.maxLength.toLocaleString("en")} characters`);
  return said.length ? ` (${said.join(", ")})` : "";
};

// What a body may look like: what must be given, and nothing else.
const example = (doc, schema, name = "", depth = 0) => {
  schema = follow(doc, schema);
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (schema.examples && schema.examples.length) return schema.examples[0];
  if (schema.enum) return schema.enum[0];
  const choice = schema.oneOf || schema.anyOf;
  if (choice && !schema.properties) return example(doc, choice[0], name, depth);
  const type = [].concat(schema.type || (schema.properties ? "object" : "string"))[0];
  if (type === "object") {
    const made = {};
    if (depth < 4)
      for (const key of schema.required || []) made[key] = example(doc, (schema.properties || {})[key], key, depth + 1);
    return made;
  }
  if (type === "array") return schema.minItems && depth < 4 ? [example(doc, schema.items, name, depth + 1)] : [];
  if (type === "integer" || type === "number") return Math.max(schema.minimum || 0, 0);
  if (type === "boolean") return false;
  if (type === "null") return null;
  return EXAMPLES[name] || name || "text";
};

const fields = (doc, schema) => {
  schema = follow(doc, schema);
  const choice = schema.oneOf || schema.anyOf;
  if (choice && !schema.properties) return fields(doc, choice[0]);
  const rows = Object.entries(schema.properties || {}).map(([name, rules]) => {
    const told = follow(doc, rules);
    return make("tr", {},
      make("td", { className: (schema.required || []).includes(name) ? "needed" : "" }, name),
      make("td", {}, kind(doc, rules)),
      make("td", {}, (rules.description || told.description || "") + limits(told)));
  });
  return rows.length ? make("div", { className: "fields" }, make("table", {}, make("tbody", {}, ...rows)))
    : make("p", {}, kind(doc, schema));
};

const json = (part) => part && part.content && part.content["application/json"] && part.content["application/json"].schema;
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// Reads its inputs, sends, and shows what came back.
class OperationForm {
  constructor(doc, path, method, operation) {
    this.path = path;
    this.method = method.toUpperCase();
    this.inputs = (operation.parameters || []).map((parameter) => {
      const id = `${operation.operationId}-${parameter.name}`;
      const input = make("input", { id, placeholder: kind(doc, parameter.schema), autocomplete: "off" });
      if (parameter.required) input.value = EXAMPLES[parameter.name] || "";
      return { parameter, input, label: make("label", { htmlFor: id }, make("code", {
        className: parameter.required ? "needed" : "" }, parameter.name)) };
    });
    const body = json(operation.requestBody);
    this.body = body && make("textarea", { spellcheck: false, rows: 8,
      value: JSON.stringify(example(doc, body), null, 2), ariaLabel: `Body of ${operation.operationId}` });
    this.send = make("button", { type: "submit", className: "send" }, "Send");
    this.stop = make("button", { type: "button", hidden: true }, "Stop");
    this.status = make("p", { className: "status", role: "status" });
    this.answer = make("pre", { className: "wrap answer", hidden: true, tabIndex: 0 });
    this.curl = make("pre", { className: "wrap curl", tabIndex: 0 });
    this.form = make("form", {},
      this.inputs.length ? make("div", { className: "form" }, ...this.inputs.flatMap((each) => [each.label, each.input])) : null,
      this.body ? make("h3", {}, "Body") : null, this.body,
      make("div", { className: "buttons" }, this.send, this.stop), this.status, this.answer,
      make("h3", {}, "The same from a shell"), this.curl);
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.call(); });
    this.form.addEventListener("input", () => this.drawCurl());
    document.getElementById("token").addEventListener("input", () => this.drawCurl());
    this.drawCurl();
  }

  // Relative to this page; what is missing of the path is said.
  address() {
    const query = new URLSearchParams();
    let path = this.path.replace(/^\//, "");
    for (const { parameter, input } of this.inputs) {
      const value = input.value.trim();
      if (parameter.in === "path") {
        if (!value) throw new Error(`${parameter.name} is a part of the address and must be given`);
        path = path.replace(`{${parameter.name}}`, encodeURIComponent(value));
      } else if (value) query.append(parameter.name, value);
    }
    return query.size ? `${path}?${query}` : path;
  }

  drawCurl() {
    let address;
    try { address = this.address(); } catch { address = this.path.replace(/^\//, ""); }
    const parts = ["curl -s", this.method === "GET" ? "" : `-X ${this.method}`, quoted(new URL(address, document.baseURI).href)];
    if (document.getElementById("token").value) parts.push(`-H "Authorization: Bearer $COMMONPLACE_TOKEN"`);
    if (this.body) parts.push("-H 'Content-Type: application/json'", `-d ${quoted(this.body.value)}`);
    this.curl.textContent = parts.filter(Boolean).join(" ");
  }

  async call() {
    const headers = { Accept: "application/json" };
    const token = document.getElementById("token").value.trim();
    if (token) headers.Authorization = `Bearer ${token}`;
    let address;
    try {
      address = this.address();
      if (this.body) {
        headers["Content-Type"] = "application/json";
        JSON.parse(this.body.value);
      }
    } catch (error) {
      this.show(`Not sent: ${error.message}`, "bad", "");
      return;
    }
    const control = new AbortController();
    this.stop.onclick = () => control.abort();
    this.send.disabled = true;
    this.stop.hidden = false;
    const started = performance.now();
    try {
      const response = await fetch(address, { method: this.method, headers, body: this.body ? this.body.value : undefined,
        signal: control.signal, credentials: "omit", redirect: "manual", cache: "no-store" });
      const said = () => `${response.status} ${response.statusText} in ${Math.round(performance.now() - started)} ms`;
      const mood = response.ok ? "good" : "bad";
      let text = "";
      if (response.body) {
        const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let part = await reader.read(); !part.done; part = await reader.read()) {
          text += part.value;
          this.show(said(), mood, text);
          if (text.length > SHOWN_CHARS) { control.abort(); break; }
        }
      }
      this.show(said(), mood, text);
    } catch (error) {
      if (error.name === "AbortError") this.status.textContent += " (stopped)";
      else this.show(`No answer from ${location.host}: is the server still running?`, "bad", "");
    } finally {
      this.send.disabled = false;
      this.stop.hidden = true;
    }
  }

  show(said, mood, text) {
    this.status.textContent = said;
    this.status.className = `status ${mood}`;
    let shown = text;
    try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch { /* NDJSON, a stream, text */ }
    this.answer.textContent = shown.length > SHOWN_CHARS ? `${shown.slice(0, SHOWN_CHARS)}\n…` : shown;
    this.answer.hidden = !text;
  }
}

const draw = (doc, path, method, operation) => {
  const box = make("details", { id: operation.operationId }, make("summary", {},
    make("span", { className: `method ${method.toUpperCase()}` }, method.toUpperCase()), make("code", {}, path),
    make("span", { className: "says" }, operation.summary), make("span", { className: "role" }, operation["x-role"] || "")));
  // Drawn when it is opened: a hundred forms at once are slow to lay out.
  box.addEventListener("toggle", () => {
    if (!box.open || box.querySelector(".inside")) return;
    const inside = make("div", { className: "inside" });
    if (operation.description) inside.append(make("p", {}, operation.description));
    const body = json(operation.requestBody);
    const parameters = operation.parameters || [];
    if (parameters.length) inside.append(make("h3", {}, "Parameters"), make("div", { className: "fields" }, make("table", {},
      make("tbody", {}, ...parameters.map((each) => make("tr", {}, make("td", { className: each.required ? "needed" : "" }, each.name),
        make("td", {}, kind(doc, each.schema)), make("td", {}, (each.description || "") + limits(each.schema))))))));
    if (body) inside.append(make("h3", {}, "Fields of the body"), fields(doc, body));
    const answered = Object.entries(operation.responses).find(([status]) => status.startsWith("2"));
    if (answered && json(answered[1])) inside.append(make("h3", {}, `Answer ${answered[0]}`), fields(doc, json(answered[1])));
    inside.append(make("h3", {}, "Try it"), new OperationForm(doc, path, method, operation).form);
    box.append(inside);
  });
  return box;
};

const openNamed = () => {
  const box = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (box && box.tagName === "DETAILS") {
    box.open = true;
    box.scrollIntoView();
  }
};

const start = async () => {
  const api = document.getElementById("api");
  const state = document.getElementById("state");
  let doc;
  try {
    const response = await fetch("openapi.json");
    if (!response.ok) throw new Error(`${response.status}`);
    doc = await response.json();
  } catch (error) {
    state.textContent = `openapi.json could not be loaded (${error.message}); is the server still running?`;
    return;
  }
  const groups = new Map();
  for (const [path, methods] of Object.entries(doc.paths))
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push([path, method, operation]);
    }
  const sections = [];
  for (const [tag, operations] of groups) {
    const boxes = operations.map(([path, method, operation]) => {
      const box = draw(doc, path, method, operation);
      box.dataset.words = `${path} ${method} ${operation.operationId} ${operation.summary} ${tag}`.toLowerCase();
      return box;
    });
    const section = make("section", {}, make("h2", { id: `tag-${tag}` }, tag), ...boxes);
    sections.push([section, boxes]);
    document.getElementById("tags").append(make("a", { href: `#tag-${tag}` }, `${tag} (${operations.length})`));
    api.append(section);
  }
  const find = document.getElementById("find");
  find.addEventListener("input", () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const [section, boxes] of sections) {
      for (const box of boxes) box.hidden = !words.every((word) => box.dataset.words.includes(word));
      const shown = boxes.filter((box) => !box.hidden).length;
      section.hidden = !shown;
      count += shown;
    }
    state.textContent = words.length ? `${count} ${count === 1 ? "operation" : "operations"}` : "";
  });
  state.textContent = "";
  api.setAttribute("aria-busy", "false");
  addEventListener("hashchange", openNamed);
  openNamed();
};

start();
