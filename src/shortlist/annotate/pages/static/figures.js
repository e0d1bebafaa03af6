// Figures as people read them; a dash where there is none yet.

export const count = (value) => value.toLocaleString("en");
export const percent = (share) => (share === null ? "–" : `${(100 * share).toFixed(1)} %`);
export const seconds = (value) => (value === null ? "–" : value.toFixed(1));
