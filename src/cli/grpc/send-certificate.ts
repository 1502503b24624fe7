import type { Send } from "../../grpc/forward.ts";

/**
 * Sends calls to the coordinator. With a key of the role `bridge`, a call whose client has a certificate and
 * no key counts as one of the holder of this certificate. The key is sent with no other call.
 */
export function sendWith(key: string | undefined): Send {
  return (request, certificate) => {
    const { headers } = request;
    if (key !== undefined && certificate !== undefined && !headers.has("authorization")) {
      headers.set("authorization", `Bearer ${key}`);
      headers.set("client-cert", `:${certificate.toString("base64")}:`);
    }
    return fetch(request);
  };
}
