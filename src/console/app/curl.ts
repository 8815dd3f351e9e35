/**
 * Returns a field of a body as JSON in single quotes of a shell. The single quotes end around the variable of
 * a secret, because the shell expands no variable in single quotes. Returns '' for an undefined value.
 */
const fieldOf = ([name, value]: [string, unknown]): string =>
  /secret|password/.test(name) && typeof value === 'string'
    ? `"${name}":"'"$${name.toUpperCase()}"'"`
    : JSON.stringify({ [name]: value })
        .slice(1, -1)
        .replaceAll("'", "'\\''")

/**
 * Returns a call as a shell command. The command takes the token and the secrets of the body from shell
 * variables, such as `$TOKEN` and `$PASSWORD`, so that a person can copy and keep the command.
 */
export const curlOf = (method: string, path: string, body?: object): string => {
  const lines = [
    `curl -X ${method} "${location.origin}/api/v1/admin${path}"`,
    '-H "authorization: Bearer $TOKEN"',
  ]
  if (body !== undefined) {
    const json = Object.entries(body).map(fieldOf).filter(Boolean).join(',')
    lines.push('-H "content-type: application/json"', `-d '{${json}}'`)
  }
  return lines.join(' \\\n  ')
}
