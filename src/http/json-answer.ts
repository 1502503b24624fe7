/** Like `Response.json`, but the text ends with a line feed, so that answers to curl don't run together. */
export const jsonAnswer = (body: unknown, status: number, headers: Readonly<Record<string, string>> = {}) =>
  new Response(`${JSON.stringify(body)}\n`, {
    status,
    headers: { "content-type": "application/json", ...headers },
  });
