// The server's HTTP interface: one function a route. All of them reject with a `Problem`.

/** What the server says that went wrong: kind, message, call, field, to_try, status. */
export class Problem extends Error {
  constructor({ kind, message, call = null, field = null, to_try = null }, status = 0) {
    super(message);
    Object.assign(this, { kind, call, field, to_try, status });
  }
}

/** Whether this is only a request that was given up for a newer one. */
export function isAbandoned(error) {
  return error instanceof DOMException && error.name === "AbortError";
}

/** Whether the same request may succeed later: the server was busy, or did not answer. */
export function mayPass(problem) {
  return [0, 409, 429].includes(problem.status) || problem.status >= 500 || problem.kind === "busy";
}

// Asks for mistakes of those who type as `{"error": …}` with status 200, which no console complains of.
const QUIET = { "X-Errors": "200" };

let waiting = 0;

// How many answers the page waits for stands at its root, for its look and for those who test it.
async function send(...given) {
  document.documentElement.dataset.waits = String((waiting += 1));
  try {
    return await sent(...given);
  } finally {
    document.documentElement.dataset.waits = String((waiting -= 1));
  }
}

async function sent(method, path, { body = null, signal = null } = {}) {
  let response;
  try {
    response = await fetch(path, {
      method,
      signal,
      credentials: "same-origin",
      headers: { ...QUIET, ...(body === null ? {} : { "Content-Type": "application/json" }) },
      body: body === null ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (isAbandoned(error)) throw error;
    throw new Problem({
      kind: "offline",
      message: "The server does not answer.",
      to_try: "Look whether 'kopl serve' still runs, then try again. What stands on this page is kept.",
    });
  }
  let answer = null;
  try {
    answer = await response.json();
  } catch (error) {
    if (isAbandoned(error)) throw error;
  }
  const failed = answer && answer.error && Object.keys(answer).length === 1 ? answer.error : null;
  if (response.ok && answer !== null && !failed) return answer;
  throw new Problem(
    failed || { kind: "request", message: `The server answers with status ${response.status}.` },
    failed?.status ?? response.status,
  );
}

/** A path with those of the parameters that are given. */
function address(path, parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return given.length ? `${path}?${new URLSearchParams(given)}` : path;
}

const get = (path, parameters = {}, options = {}) => send("GET", address(path, parameters), options);
const post = (path, body, options = {}) => send("POST", path, { ...options, body });
const remove = (path, parameters = {}, options = {}) => send("DELETE", address(path, parameters), options);

/** Hand the token of the link to the server, which keeps it in a cookie that scripts do not see. */
export const signIn = (token) => post("api/session", { token });

export const info = (kb = null) => get("api/info", { kb });
export const examples = ({ kb = null, seed = null, count = null } = {}, options) => get("api/examples", { kb, seed, count }, options);

// --- asking and programs: all bodies may have `kb` ---------------------------------------------
export const ask = (body, options) => post("api/ask", body, options);
export const run = (body, options) => post("api/run", body, options);
export const complete = (body, options) => post("api/complete", body, options);
export const edit = (body, options) => post("api/edit", body, options);

/** Several operations, one after the other; resolves to the view after the last one. */
export async function editAll({ kb, program }, operations) {
  let view = null;
  for (const operation of operations) ({ view } = await edit({ kb, program: view ? view.draft : program, operation }));
  return view;
}

export const translate = (body, options) => post("api/translate", body, options);
export const sparql = (body, options) => post("api/sparql", body, options);
export const facts = (body, options) => post("api/facts", body, options);
export const exportProgram = (body, options) => post("api/export", body, options);
export const queryView = (body, options) => post("api/query-view", body, options);

// --- the knowledge base ------------------------------------------------------------------------
export const search = ({ kb = null, q, kind = null, limit = null }, options) => get("api/kb/search", { kb, q, kind, limit }, options);
export const entity = ({ kb = null, id, limit = null }, options) => get(`api/kb/entity/${encodeURIComponent(id)}`, { kb, limit }, options);
export const schema = ({ kb = null, concept = null } = {}, options) => get("api/kb/schema", { kb, concept }, options);
export const addBase = (body, options) => post("api/kb", body, options);
export const uploadJob = (job, options) => get(`api/kb/upload/${encodeURIComponent(job)}`, {}, options);
export const removeBase = (id) => remove(`api/kb/${encodeURIComponent(id)}`);

// --- corrections and the queue -----------------------------------------------------------------
export const corrections = ({ kb = null } = {}, options) => get("api/corrections", { kb }, options);
export const keep = (body, options) => post("api/corrections", body, options);
export const takeBack = (id, { kb = null } = {}) => remove(`api/corrections/${encodeURIComponent(id)}`, { kb });
export const correctionsAddress = (form, { kb = null } = {}) => address("api/corrections/export", { form, kb });
export const queue = ({ kb = null, limit = null, reader = null } = {}, options) => get("api/queue", { kb, limit, reader }, options);
export const fillQueue = (body, options) => post("api/queue", body, options);
export const emptyQueue = ({ kb = null } = {}) => remove("api/queue", { kb });

// --- training ----------------------------------------------------------------------------------
export const train = (body) => post("api/train", body);
export const stopTraining = () => remove("api/train");
export const keepTraining = (body) => post("api/train/keep", body);

/** Listen to a training: `listener(kind, job)` with kind "progress", "done", "failed" or "stopped", and
 * "lost" with null where the connection breaks. Returns a function that stops listening. */
export function trainEvents(listener) {
  const source = new EventSource("api/train/events");
  for (const kind of ["progress", "done", "failed", "stopped"]) {
    source.addEventListener(kind, (event) => {
      if (kind !== "progress") source.close();
      listener(kind, JSON.parse(event.data));
    });
  }
  source.onerror = () => {
    if (source.readyState === EventSource.CLOSED) listener("lost", null);
  };
  return () => source.close();
}

export const openapi = () => get("api/openapi.json");

/** Only the newest of several requests counts: `latest(f)(...)` gives up the one before it, and
 * `latest(f).stop()` the one that is under way. */
export function latest(action) {
  let controller = null;
  const newest = (...given) => {
    controller?.abort();
    controller = new AbortController();
    return action(...given, { signal: controller.signal });
  };
  newest.stop = () => controller?.abort();
  return newest;
}
