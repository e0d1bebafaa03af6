// The secret is behind the #: it never reaches a log, and it leaves the address bar before anything else happens.
import { call } from "./api.js";

const secret = decodeURIComponent(location.hash.slice(1));
history.replaceState(null, "", "/join");
const status = document.getElementById("status");
try {
  const who = await call("POST", "/session", { secret });
  location.replace(who.role === "admin" ? "/admin" : "/");
} catch (error) {
  document.querySelector("h1").textContent = "This link does not work";
  status.textContent = error.message;
}
