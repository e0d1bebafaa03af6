// Figures as people read them; a dash where there is none yet.

export const count = (value) => value.toLocaleString(document.documentElement.lang);
export const counted = (value, one, several) => `${count(value)} ${value === 1 ? one : several}`;
export const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);
export const outOf = (some, all) => (all ? `${count(some)} of ${count(all)}` : "–");
export const hours = (value) => (value === null ? "–" : value < 1 ? `${value && Math.max(Math.round(60 * value), 1)} min` : `${value.toFixed(1)} h`);
export const seconds = (value) => (value === null ? "–" : value.toFixed(1));
