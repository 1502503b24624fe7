/** A Worker that sends every request to one cell, and does nothing else. */
export default {
  fetch(request: Request, env: { CELL: string }): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    return fetch(new Request(`${env.CELL}${pathname}${search}`, request), { redirect: "manual" });
  },
};
