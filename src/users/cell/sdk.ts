/** What the cell reports as its SDK. A test compares the version with package.json. */
export const SDK = { name: "leasehold", version: "0.2.0" } as const;
