// The secret follows the #: it never reaches a log, and it leaves the address bar before anything else happens.
import { ApiError, call } from "./api.js";
import { at, element } from "./dom.js";
import { reason, say } from "./words.js";

const secret = location.hash.slice(1);
history.replaceState(null, "", "/join");
const title = (words) => (document.querySelector("h1").textContent = words);

function retry(instead) {
  at("status").textContent = say("retry");
  setTimeout(() => join(instead), 2000);
}

async function join(instead = false) {
  try {
    const who = await call("POST", "/session", { secret, instead });
    location.replace(who.role !== "annotator" ? "/admin" : "/");
  } catch (error) {
    if (!(error instanceof ApiError) || error.status >= 500) retry(instead);
    else if (error.code === "somebody_else") call("GET", "/session").then(ask, () => retry(instead));
    else {
      title(say("bad_link"));
      at("status").textContent = `${reason(error)}. ${say("bad_link_next")}`;
      at("paste").hidden = false;
      // an owner's link works once: who opens it again in the same browser is signed in already
      call("GET", "/session?role=admin").then((who) => (at("manage").hidden = who.role === "annotator"), () => {});
    }
  }
}

// A page elsewhere may have led here: whoever is signed in says whether to become somebody else.
function ask({ name }) {
  title(say("other_link"));
  const yes = element("button", { id: "swap", type: "button" }, say("go_on"));
  const no = element("button", { id: "stay", type: "button", class: "primary" }, say("stay"));
  yes.addEventListener("click", () => join(true));
  no.addEventListener("click", () => location.replace("/"));
  at("status").textContent = say("other_link_text", { name });
  at("status").after(element("div", { class: "row" }, no, yes));
  no.focus();
}

// Only the secret is taken from what was pasted: the rest might lead elsewhere.
at("paste").addEventListener("submit", (event) => {
  event.preventDefault();
  location.hash = new URL(at("link").value).hash;
  location.reload();
});

if (secret) join();
else {
  title(say("sign_in_title"));
  at("status").textContent = say("open_link");
  at("paste").hidden = false;
}
