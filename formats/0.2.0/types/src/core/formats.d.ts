interface Format {
    release: string;
    features: readonly string[];
}
export declare const FORMATS: readonly Format[];
export declare const FORMAT: number;
export declare const oldestFormat: (newest: number) => number;
export interface Stamp {
    speaks: number;
    format: number;
}
export {};
