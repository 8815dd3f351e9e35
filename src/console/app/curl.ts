/** Returns a call as a shell command. The token is a variable, its value is not shown. */
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
