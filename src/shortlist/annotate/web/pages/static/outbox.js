// What was decided but not yet acknowledged. It lives in IndexedDB, so a closed tab, a crash or a dead network loses
// nothing; entries are sent one after another in the order they were made, and leave only after the server's answer.

const STORE = "entries";

function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("shortlist-outbox", 2);
    request.onupgradeneeded = () => {
      const database = request.result;
      if (database.objectStoreNames.contains(STORE)) database.deleteObjectStore(STORE);
      database.createObjectStore(STORE, { keyPath: "key", autoIncrement: true }).createIndex("owner", "owner");
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function run(mode, action) {
  const database = await open();
  try {
    return await new Promise((resolve, reject) => {
      // strict: on the disk before we go on, not in some buffer
      const transaction = database.transaction(STORE, mode, mode === "readwrite" ? { durability: "strict" } : {});
      const request = action(transaction.objectStore(STORE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onerror = () => reject(transaction.error);
      transaction.onabort = () => reject(transaction.error);
    });
  } finally {
    database.close();
  }
}

export class Outbox {
  entries = []; // waiting, the oldest first; a copy in memory, so that the page never waits for the disk
  kept = true; // whether a closed tab would lose nothing

  // `owner` says whose: another person, or another project on this address, must not send these.
  async load(owner) {
    this.owner = owner;
    try {
      this.entries = await run("readonly", (store) => store.index("owner").getAll(owner));
    } catch {
      this.kept = false; // a browser without storage: entries live as long as the tab
    }
  }

  add(entry) {
    const made = { ...entry, owner: this.owner };
    this.entries.push(made);
    made.stored = this.#store(made);
    return made;
  }

  async remove(entry) {
    if (entry.key !== undefined) await run("readwrite", (store) => store.delete(entry.key)).catch(() => {});
    this.entries = this.entries.filter((other) => other !== entry);
  }

  async #store(entry) {
    try {
      const { path, body, question, owner } = entry;
      entry.key = await run("readwrite", (store) => store.add({ path, body, question, owner }));
    } catch {
      this.kept = false;
    }
  }
}
