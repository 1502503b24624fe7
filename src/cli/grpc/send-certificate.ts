import type { Send } from "../../hosts/grpc/send.ts";

/**
 * Sends calls to the coordinator. With a key of the role `bridge`, a call whose client has a certificate and
 * no key counts as one of the holder of this certificate. The key is sent with no other call.
 */
export const sendWith =
  (key: string | undefined, send: Send): Send =>
  (request) => {
    const { certificate, headers } = request;
    if (key === undefined || certificate === undefined || headers["authorization"] !== undefined)
      return send(request);
    const proof = {
      authorization: `Bearer ${key}`,
      "client-cert": `:${certificate.toString("base64")}:`,
    };
    return send({ ...request, headers: { ...headers, ...proof } });
  };
