"use strict";
// The chat page. What a model or a person wrote gets into the page as text only, never as markup.

const by = (id) => document.getElementById(id);

const EXAMPLE = [{
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather in a city now.",
    parameters: {
      type: "object",
      properties: { city: { type: "string", description: "the city's name" } },
      required: ["city"],
    },
  },
}];

// Control tokens in a prompt: shown in another colour.
const MARKER = /(<\|\w+\|>|<\/?(?:tool_call|tool_response|tools|think)>)/;

let model = "";
let messages = []; // the conversation in OpenAI's form, without the system text
let turns = []; // behind each answer: {prompt, events, usage}
let chosen = -1; // the turn that is shown
let running = null; // the AbortController of the answer being made

function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  const { text, ...attributes } = options;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
}

function headers() {
  const key = by("key").value;
  return { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) };
}

async function findModel() {
  try {
    const answer = await fetch("/v1/models", { headers: headers() });
    if (answer.status === 401) {
      by("model").textContent = "needs its API key";
      by("settings").open = true;
      by("key").focus();
      return;
    }
    model = (await answer.json()).data[0].id;
    by("model").textContent = model;
  } catch {
    by("model").textContent = "the server does not answer";
  }
}

// --- the conversation

function add(kind, ...children) {
  by("empty").hidden = true;
  const log = by("log");
  const low = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  const made = element("div", { class: `message ${kind}` }, ...children);
  log.append(made);
  if (low) log.scrollTop = log.scrollHeight;
  return made;
}

function request() {
  const tools = by("tools").value.trim();
  const system = by("system").value.trim();
  const body = {
    model,
    messages: [...(system ? [{ role: "system", content: system }] : []), ...messages],
    max_tokens: Number(by("limit").value) || 512,
    stream: true,
  };
  if (tools) {
    body.tools = JSON.parse(tools);
    body.tool_choice = by("choice").value;
  }
  if (by("temperature").value !== "") body.temperature = Number(by("temperature").value);
  return body;
}

async function ask() {
  const conversation = messages;
  let body;
  try {
    body = request();
  } catch (error) {
    by("settings").open = true;
    by("tools").focus();
    add("fault", `The tools are not JSON: ${error.message}`);
    return false;
  }
  const answer = new Answer();
  const mine = new AbortController();
  running = mine;
  by("send").hidden = true;
  by("stop").hidden = false;
  try {
    const response = await fetch("/v1/events", {
      method: "POST", headers: headers(), body: JSON.stringify(body), signal: mine.signal,
    });
    if (!response.ok) throw new Error((await response.json()).error.message);
    for await (const event of serverSentEvents(response.body)) answer.take(event);
  } catch (error) {
    answer.fail(error.name === "AbortError" ? "stopped" : error.message);
  }
  if (running === mine) {
    running = null;
    by("send").hidden = false;
    by("stop").hidden = true;
  }
  if (messages === conversation) answer.end(); // else a new chat has begun
  return true;
}

async function* serverSentEvents(stream) {
  const decoder = new TextDecoder();
  const reader = stream.getReader();
  let held = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    held += decoder.decode(value, { stream: true });
    const parts = held.split("\n\n");
    held = parts.pop();
    for (const part of parts) {
      const data = part.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (data && data !== "[DONE]") yield JSON.parse(data);
    }
  }
}

class Answer {
  constructor() {
    this.turn = { prompt: "", events: [], usage: null };
    this.number = turns.push(this.turn) - 1;
    this.thought = element("div", { class: "thought" });
    this.text = element("div");
    this.calls = element("div", { class: "call" });
    this.open = new Map();
    this.message = null;
    this.box = add("assistant", this.thought, this.text, this.calls);
    const show = element("button", { type: "button", class: "turn", text: `Behind answer ${this.number + 1}` });
    show.addEventListener("click", () => { choose(this.number); by("behind").scrollIntoView({ block: "nearest" }); });
    this.box.append(show);
    choose(this.number);
  }

  take(event) {
    if (event.error) throw new Error(event.error.message);
    const log = by("log");
    const low = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
    if (event.type === "round_start") this.turn.prompt = event.prompt;
    else if (event.type === "text") this.text.append(event.delta);
    else if (event.type === "reasoning") this.thought.append(event.delta);
    else if (event.type === "call_name") {
      const line = element("div", { text: `⚙ ${event.name} ` });
      this.open.set(event.index, line);
      this.calls.append(line);
    } else if (event.type === "call_args") this.open.get(event.index)?.append(event.delta);
    else if (event.type === "call_error") {
      this.calls.append(element("div", { class: "fault", text: `✗ ${event.problem.message}` }));
    } else if (event.type === "round_end") this.turn.usage = { finish: event.finish, ...event.usage };
    else if (event.type === "message_added") this.message = event.message;
    remember(this.turn.events, event);
    if (chosen === this.number) showTurn(event.type === "round_start");
    if (low) log.scrollTop = log.scrollHeight;
  }

  fail(reason) {
    this.box.append(element("div", { class: "fault", text: reason }));
  }

  end() {
    if (chosen === this.number) showTurn(true);
    if (!this.message) {
      // Nothing whole came: what was said so far stays part of the conversation, unless it is nothing.
      if (this.text.textContent) messages.push({ role: "assistant", content: this.text.textContent });
      else if (messages.at(-1).role === "user") messages.pop(); // results stay: their calls do
      return;
    }
    const calls = this.message.calls.filter((call) => call.name);
    const said = { role: "assistant", content: this.message.content };
    if (this.message.reasoning) said.reasoning_content = this.message.reasoning;
    if (calls.length) {
      said.tool_calls = calls.map((call, index) => ({
        id: call.id || `call_${messages.length}_${index}`,
        type: "function",
        function: { name: call.name, arguments: JSON.stringify(call.arguments) },
      }));
    }
    messages.push(said);
    if (calls.length) askForResults(said.tool_calls);
  }
}

function askForResults(calls) {
  const fields = calls.map(() => element("textarea", { rows: 1 }));
  const labels = calls.map((call, index) => element(
    "label", { text: `Result of ${call.function.name} ${call.function.arguments}` }, fields[index]));
  const form = element("form", { class: "results" }, ...labels, element("button", { type: "submit", text: "Send results" }));
  const send = () => {
    form.remove();
    calls.forEach((call, index) => {
      messages.push({ role: "tool", tool_call_id: call.id, content: fields[index].value });
      add("tool", `→ ${fields[index].value}`);
    });
    ask();
  };
  form.addEventListener("submit", (event) => { event.preventDefault(); send(); });
  fields.forEach((field, index) => field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (index + 1 < fields.length) fields[index + 1].focus();
    else send();
  }));
  by("log").append(form);
  by("log").scrollTop = by("log").scrollHeight;
  fields[0].focus();
}

// --- behind the answer

function remember(events, event) {
  const last = events[events.length - 1];
  // Pieces of one text are one row.
  if (last && last.type === event.type && last.index === event.index && "delta" in event) last.delta += event.delta;
  else events.push({ ...event });
}

function choose(number) {
  chosen = number;
  document.querySelectorAll(".assistant").forEach((box, index) => box.classList.toggle("chosen", index === number));
  showTurn(true);
}

function showTurn(promptToo) {
  const turn = turns[chosen];
  by("which").textContent = turn ? `Behind answer ${chosen + 1}` : "Behind the answer";
  if (promptToo) by("prompt").replaceChildren(...pieces(turn ? turn.prompt : ""));
  by("events").replaceChildren(...(turn ? turn.events.map(row) : []));
  const usage = turn && turn.usage;
  by("cost").textContent = usage
    ? `${usage.prompt_tokens} tokens read (${usage.cached_tokens} known), ${usage.new_tokens} written`
      + ` (${usage.forced_tokens} forced), ${(usage.prefill_s + usage.decode_s).toFixed(1)} s, ended by ${usage.finish}`
    : "";
}

function pieces(prompt) {
  return prompt.split(MARKER).map((piece, index) => (index % 2 ? element("span", { class: "marker", text: piece }) : piece));
}

function row(event) {
  const { type, prompt, message, ...rest } = event;
  let text = "delta" in event ? event.delta : Object.keys(rest).length ? JSON.stringify(rest) : "";
  if (prompt !== undefined) text = `${prompt.length} characters, see Raw prompt`;
  if (message && typeof message === "object") text = JSON.stringify(message.raw ?? message.content);
  return element("div", { class: "event" }, element("b", { text: type }), element("span", { text }));
}

function selectTab(name) {
  for (const each of ["prompt", "events"]) {
    const tab = by(`tab-${each}`);
    tab.setAttribute("aria-selected", String(each === name));
    tab.tabIndex = each === name ? 0 : -1;
    by(each).hidden = each !== name;
  }
}

// --- wiring

function reset() {
  running?.abort();
  running = null;
  by("send").hidden = false;
  by("stop").hidden = true;
  messages = [];
  turns = [];
  chosen = -1;
  by("log").replaceChildren(by("empty"));
  by("empty").hidden = false;
  showTurn(true);
  by("question").focus();
}

by("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  const question = by("question").value.trim();
  const open = document.querySelector(".results textarea");
  if (open) open.focus(); // first the results
  if (!question || running || open) return;
  by("question").value = "";
  messages.push({ role: "user", content: question });
  const box = add("user", question);
  if (!(await ask())) {
    messages.pop();
    box.remove();
    by("question").value = question;
  }
});
by("question").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    by("ask").requestSubmit();
  }
});
document.addEventListener("keydown", (event) => { if (event.key === "Escape") running?.abort(); });
by("stop").addEventListener("click", () => running?.abort());
by("new").addEventListener("click", reset);
by("example").addEventListener("click", () => { by("tools").value = JSON.stringify(EXAMPLE, null, 1); });
by("key").addEventListener("change", findModel);
for (const name of ["prompt", "events"]) {
  by(`tab-${name}`).addEventListener("click", () => selectTab(name));
  by(`tab-${name}`).addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const other = name === "prompt" ? "events" : "prompt";
    selectTab(other);
    by(`tab-${other}`).focus();
  });
}
findModel();
