// Which questions are open here: the server's, as of its last reply, with what was decided since laid on top.

export const DECISIONS = ["/answers", "/skips", "/undos"];

export function openQuestions(server, waiting) {
  let held = server;
  for (const { path, body, question } of waiting.filter(({ path }) => DECISIONS.includes(path))) {
    held = held.filter((other) => other.id !== body.question);
    if (path === "/undos") held = [{ ...question, attempt: body.attempt + 1 }, ...held];
  }
  return held;
}

// The number of one whose item was erased may be given to the next.
export const identity = (question) => `${question?.id} ${question?.served_at}`;

// Asked again at the next attempt it is another showing; a question taken back after a reload has no content yet.
export const sameShowing = (one, other) =>
  identity(one) === identity(other) && one?.attempt === other?.attempt && Boolean(one?.item) === Boolean(other?.item);
