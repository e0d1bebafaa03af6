// What was decided but not yet acknowledged. It lives in IndexedDB, so a closed tab, a crash or a dead network loses
// nothing; entries are sent one after another in the order they were made, and leave only after a 2xx.

const STORE = "entries";

function open() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open("shortlist-outbox", 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { autoIncrement: true });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function run(mode, action) {
  const database = await open();
  try {
    return await new Promise((resolve, reject) => {
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

export const put = (entry) => run("readwrite", (store) => store.add(entry));
export const remove = (key) => run("readwrite", (store) => store.delete(key));
export const all = () => run("readonly", (store) => store.getAll());

export async function first() {
  const database = await open();
  try {
    return await new Promise((resolve, reject) => {
      const request = database.transaction(STORE).objectStore(STORE).openCursor();
      request.onsuccess = () => resolve(request.result && { key: request.result.key, entry: request.result.value });
      request.onerror = () => reject(request.error);
    });
  } finally {
    database.close();
  }
}
