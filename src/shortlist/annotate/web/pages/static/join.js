// The secret follows the #: it never reaches a log, and it leaves the address bar before anything else happens.
import { ApiError, call } from "./api.js";

const secret = location.hash.slice(1);
history.replaceState(null, "", "/join");
const status = document.getElementById("status");

async function join() {
  try {
    const who = await call("POST", "/session", { secret });
    location.replace(who.role === "admin" ? "/admin" : "/");
  } catch (error) {
    if (error instanceof ApiError) {
      document.querySelector("h1").textContent = "This link does not work";
      status.textContent = error.message;
      return;
    }
    status.textContent = "No connection. Trying again …";
    setTimeout(join, 2000);
  }
}

if (secret) join();
else status.textContent = "Open the link that you were given.";
