/** Whether a PEM has a private key. The deployment refuses one, too, but must not receive it. */
export const hasPrivateKey = (pem: string): boolean => pem.includes("PRIVATE KEY");
