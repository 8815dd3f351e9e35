/**
 * Returns a call as a shell command. The command takes the token from a variable, so it does not contain the
 * token.
 */
export const curlOf = (method: string, path: string, body?: unknown): string => {
  const lines = [
    `curl -X ${method} "${location.origin}/api/v1/admin${path}"`,
    '-H "authorization: Bearer $TOKEN"',
  ]
  if (body !== undefined) {
    const json = JSON.stringify(body).replaceAll("'", "'\\''")
    lines.push('-H "content-type: application/json"', `-d '${json}'`)
  }
  return lines.join(' \\\n  ')
}
