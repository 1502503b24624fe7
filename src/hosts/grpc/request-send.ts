import { MAX_ANSWER_BYTES, type Send } from "./send.ts";

/** Answers requests in this process. */
export function requestSend(
  coordinator: string,
  answer: (request: Request, certificate: Buffer | undefined) => Promise<Response>,
): Send {
  return async ({ method, path, headers, body, certificate, signal }) => {
    const init = { method, headers, body: body ?? null, signal: signal ?? null };
    const response = await answer(new Request(coordinator + path, init), certificate);
    return {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      body: await readBody(response),
    };
  };
}

async function readBody(response: Response): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  // Leaving the loop cancels the body.
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_ANSWER_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
