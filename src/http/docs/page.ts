export const docsPage = (): string => "<!doctype html><title>soon</title>";
export const docsHeaders = (): Record<string, string> => ({});
