/** Sends bytes over one TCP connection and reads all answers. */
import { connect } from "node:net";
import { HANG_MS, type Received } from "./server.ts";

/**
 * The mark of a request that is sent after every other one. Its answer proves that the connection was still
 * parsed correctly. A mark is an unknown parameter, which the answer names.
 */
export const LAST = "the-last-one";
/** The mark of a request hidden in the body or headers of another one. It must never be answered. */
export const HIDDEN = "hidden";

/** The beginning of a request with a mark. Its header may be continued. */
export const marked = (mark: string): string => `GET /healthz?${mark}=1 HTTP/1.1\r\nHost: marked.example\r\n`;

export const hasMark = (answer: Received | undefined, mark: string): boolean =>
  answer?.status === 400 && answer.text.includes(`"field":"${mark}"`);

const last = Buffer.from(`${marked(LAST)}Connection: close\r\n\r\n`);

/** Sends bytes, closes its side, and reads until the server closes the other side. */
export function exchange(port: number, bytes: Uint8Array): Promise<Received[]> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    const hang = setTimeout(() => {
      socket.destroy();
      reject(new Error(`the connection is still open after ${HANG_MS} ms`));
    }, HANG_MS);
    const done = (): void => {
      clearTimeout(hang);
      socket.destroy();
      resolve(answersIn(Buffer.concat(chunks)));
    };
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("end", done);
    // The server may close the connection early. The answers until then count.
    socket.on("error", done);
    socket.end(Buffer.concat([bytes, last]));
  });
}

/**
 * Parses as much of HTTP/1.1 as separates the answers. Answers to HEAD have no body, whatever their headers
 * say.
 */
function answersIn(bytes: Buffer): Received[] {
  const answers: Received[] = [];
  let rest = bytes.toString("latin1");
  while (rest.startsWith("HTTP/")) {
    const end = rest.indexOf("\r\n\r\n");
    if (end < 0) break;
    const [first = "", ...lines] = rest.slice(0, end).split("\r\n");
    const headers = Object.fromEntries(
      lines.map((line): [string, string] => [
        line.split(":")[0]?.toLowerCase() ?? "",
        line.slice(line.indexOf(":") + 1).trim(),
      ]),
    );
    const status = Number(first.split(" ")[1]);
    rest = rest.slice(end + 4);
    if (status < 200) continue;
    const { text, remaining } = bodyAt(rest, headers);
    rest = remaining;
    answers.push({ status, headers, text: Buffer.from(text, "latin1").toString("utf8") });
  }
  if (rest !== "") throw new Error(`unexpected bytes after the answers: ${rest.slice(0, 500)}`);
  return answers;
}

function bodyAt(rest: string, headers: Record<string, string>): { text: string; remaining: string } {
  if (rest.startsWith("HTTP/")) return { text: "", remaining: rest };
  if (headers["transfer-encoding"] !== "chunked") {
    const length = Number(headers["content-length"] ?? rest.length);
    return { text: rest.slice(0, length), remaining: rest.slice(length) };
  }
  let text = "";
  for (let at = 0; ;) {
    const end = rest.indexOf("\r\n", at);
    const size = Number.parseInt(rest.slice(at, end), 16);
    if (end < 0 || !(size > 0)) return { text, remaining: rest.slice(end < 0 ? rest.length : end + 4) };
    text += rest.slice(end + 2, end + 2 + size);
    at = end + 4 + size;
  }
}
