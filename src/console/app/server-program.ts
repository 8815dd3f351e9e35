/**
 * Returns a part of a URL as a JavaScript string in single quotes. A parsed URL contains no backslash, so
 * only quotes need escaping.
 */
const quoted = (text: string): string => `'${text.replaceAll("'", "\\'")}'`

/**
 * Returns the guide's server program with the origin and path of the redirect URI. Each replacement is a
 * function. In a replacement that is a string, `replace` would expand a `$'` that comes from the path.
 */
export const serverProgramFor = (program: string, { origin, pathname }: URL): string =>
  program
    .replace("'http://localhost:3000'", () => quoted(origin))
    .replace("'/callback'", () => quoted(pathname))
