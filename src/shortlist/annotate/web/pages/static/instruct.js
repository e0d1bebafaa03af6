// The admin's field for what annotators are told. It is loaded once: what is being written must not be overwritten.
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
