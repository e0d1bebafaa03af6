// What the page says, in its language (words/LANGUAGE.json on the server).
const words = JSON.parse(document.querySelector('meta[name="words"]').content);

export const say = (key, values = {}) => words[key].replace(/\{(\w+)\}/gu, (_, name) => values[name]);
