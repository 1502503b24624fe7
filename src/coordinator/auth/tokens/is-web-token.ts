const WEB_TOKEN = /^(?!lhk_)[\w-]+\.[\w-]+\.[\w-]*$/;

/** Whether a bearer has the form of a JSON web token, and not of a key. Its parts may be anything. */
export const isWebToken = (bearer: string): boolean => WEB_TOKEN.test(bearer);
