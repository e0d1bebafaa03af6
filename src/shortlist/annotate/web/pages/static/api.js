// The API as the pages use it. Every refusal becomes an ApiError with the server's code; no network is another error.

const PATIENCE_MS = 15_000; // a request that hangs is given up and sent again, which is always safe

export class ApiError extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export async function call(method, path, body) {
  const options = { method, headers: { "X-Shortlist": "1" }, credentials: "same-origin", cache: "no-store" };
  options.signal = AbortSignal.timeout(PATIENCE_MS);
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  return answered(path, options);
}

// A file as it is; it may take as long as it takes.
export async function send(method, path, file) {
  const headers = { "X-Shortlist": "1", "Content-Type": "application/octet-stream" };
  return answered(path, { method, headers, body: file, credentials: "same-origin", cache: "no-store" });
}

// Why a request failed, for the owner's pages. `otherwise`: what a lost connection means for it.
export const failure = (error, otherwise) => (error instanceof ApiError ? error.message : `No connection: ${otherwise}.`);

async function answered(path, options) {
  const response = await fetch(`/api/v1${path}`, options);
  if (response.status === 204) return null;
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new ApiError(response.status, answer.code ?? "http", answer.message ?? response.statusText);
  return answer;
}
