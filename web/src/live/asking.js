// One request at a time, and after it the newest of those that came meanwhile. Test: web/tests/live.test.mjs.

/// `send(request)` resolves to an answer; `answered(answer, request, busy)` and `failed(error, request)` are told. Returns ask(request).
export function asking(send, answered, failed) {
  let waiting = null;
  let sending = false;
  async function next() {
    sending = true;
    while (waiting) {
      const request = waiting;
      waiting = null;
      try {
        const answer = await send(request);
        answered(answer, request, waiting !== null);
      } catch (error) {
        failed(error, request);
      }
    }
    sending = false;
  }
  return (request) => {
    waiting = request;
    if (!sending) next();
  };
}

/// POSTs a request; an answer that is none throws its reason.
export async function post(request) {
  let response;
  try {
    response = await fetch("/api/forecast", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(request) });
  } catch {
    throw new Error("stepcast serve no longer answers");
  }
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
}
