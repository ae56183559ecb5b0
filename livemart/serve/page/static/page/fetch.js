// One answer of the server as JSON, or an error: it carries the server's problem, or its name is
// TimeoutError where no answer came, AbortError where nobody waits for it any more.

const PATIENCE_MS = 15_000;

export async function get(path, signal) {
  const patience = new AbortController();
  const isOver = new DOMException("no answer", "TimeoutError");
  const timer = setTimeout(() => patience.abort(isOver), PATIENCE_MS);
  if (signal.aborted) patience.abort();
  signal.addEventListener("abort", () => patience.abort(), { once: true });
  const headers = { Accept: "application/json" };
  const answer = await fetch(path, { headers, signal: patience.signal }).finally(() => clearTimeout(timer));
  if (answer.ok) return answer.json();
  const problem = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(problem.title ?? answer.statusText), {
    status: answer.status,
    problem,
    wait: Number(answer.headers.get("Retry-After")) || 0,
  });
}
