/** Returns a part of a URL as a JavaScript string in single quotes. Such a part contains no backslash. */
const quoted = (text: string): string => `'${text.replaceAll("'", "\\'")}'`

/**
 * Returns the guide's server program with the origin and path of the redirect URI, which may contain quotes.
 * Each replacement is a function, because `replace` would expand `$'` in a text.
 */
export const serverProgramFor = (program: string, { origin, pathname }: URL): string =>
  program
    .replace("'http://localhost:3000'", () => quoted(origin))
    .replace("'/callback'", () => quoted(pathname))
