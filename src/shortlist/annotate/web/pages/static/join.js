// The secret follows the #: it never reaches a log, and it leaves the address bar before anything else happens.
import { ApiError, call } from "./api.js";
import { at, element } from "./dom.js";

const secret = location.hash.slice(1);
history.replaceState(null, "", "/join");

async function join(instead = false) {
  try {
    const who = await call("POST", "/session", { secret, instead });
    location.replace(who.role !== "annotator" ? "/admin" : "/");
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) {
      at("status").textContent = "No connection. Trying again …";
      setTimeout(() => join(instead), 2000);
    } else if (error.code === "somebody_else") {
      ask(error.message);
    } else {
      document.querySelector("h1").textContent = "This link does not work";
      at("status").textContent = error.message;
    }
  }
}

// A page elsewhere may have led here: whoever is signed in says whether to become somebody else.
function ask(question) {
  document.querySelector("h1").textContent = "Somebody else's link";
  const yes = element("button", { id: "swap", type: "button" }, "Go on");
  const no = element("button", { id: "stay", type: "button" }, "Stay");
  yes.addEventListener("click", () => join(true));
  no.addEventListener("click", () => location.replace("/"));
  at("status").replaceChildren(question, element("span", { class: "tools" }, no, yes));
  no.focus();
}

if (secret) join();
else at("status").textContent = "Open the link that you were given.";
