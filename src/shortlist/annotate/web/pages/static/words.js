// What the page says, in its language (words/LANGUAGE.json on the server).
const words = JSON.parse(document.querySelector('meta[name="words"]').content);

export const say = (key, values = {}) => words[key].replace(/\{(\w+)\}/gu, (_, name) => values[name]);

// What the server refused, in the page's language where it has words for that.
export const reason = (error) => words[`error_${error.code}`] ?? error.message;
