// Files that come from and go to the disk of the one who looks at the page.

import { Problem } from "./api.js";

/** Offer a text as a file. */
export function save(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const anchor = document.createElement("a");
  anchor.href = address;
  anchor.download = name;
  anchor.hidden = true;
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Fetch a file from the server and offer it; rejects with a `Problem`. */
export async function download(address, fallback) {
  let response;
  try {
    response = await fetch(address, { credentials: "same-origin" });
  } catch {
    throw new Problem({ kind: "offline", message: "The server does not answer." });
  }
  if (!response.ok) {
    const answer = await response.json().catch(() => null);
    throw new Problem(answer?.error || { kind: "request", message: `The server answers with status ${response.status}.` }, response.status);
  }
  const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") || "")?.[1] || fallback;
  save(name, response.headers.get("Content-Type") || "text/plain", await response.text());
}

/** The bytes of a file in base64. */
export async function base64(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}
