export declare class Hmac {
    #private;
    constructor(secret: string | Uint8Array, purpose?: string);
    sign(text: string): Promise<Uint8Array>;
    verify(text: string, signature: Uint8Array<ArrayBuffer>): Promise<boolean>;
}
