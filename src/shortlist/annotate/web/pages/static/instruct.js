// The admin's field for the instructions. It is loaded once, so that what is being written is not overwritten.
import { ApiError, call } from "./api.js";
import { at } from "./dom.js";

const RETRY_MS = 3000;

async function load() {
  try {
    at("instructions").value = (await call("GET", "/session")).instructions;
    at("instructions").disabled = false;
  } catch (error) {
    if (!(error instanceof ApiError)) setTimeout(load, RETRY_MS);
  }
}

at("instruct").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (at("instructions").disabled) return;
  try {
    await call("PUT", "/instructions", { text: at("instructions").value });
    at("instructed").textContent = "Saved.";
  } catch (error) {
    at("instructed").textContent = error instanceof ApiError ? error.message : "No connection: not saved.";
  }
});
at("instructions").addEventListener("input", () => (at("instructed").textContent = ""));
load();
