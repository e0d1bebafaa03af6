// The field for the instructions. It is loaded once, so that what is being written is not overwritten.
import { call, failure } from "./api.js";
import { at } from "./dom.js";

export async function start({ owner }) {
  at("instructions").value = (await call("GET", "/session?role=admin")).instructions;
  at("instructions").readOnly = !owner;
  at("instructions").disabled = false;
  at("instruct").addEventListener("submit", async (event) => {
    event.preventDefault();
    try {
      await call("PUT", "/instructions", { text: at("instructions").value });
      at("instructed").textContent = "Saved.";
    } catch (error) {
      at("instructed").textContent = failure(error, "not saved");
    }
  });
  at("instructions").addEventListener("input", () => (at("instructed").textContent = ""));
}
