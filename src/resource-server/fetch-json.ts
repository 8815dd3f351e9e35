/** The part of `fetch` that this package calls. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

const MAX_BYTES = 1024 * 1024

/**
 * One request with a time limit (milliseconds, body included) that follows no redirect and reads at most 1 MiB.
 * `body` is undefined when the answer is not JSON or is too long. Throws what `fetch` throws.
 */
export async function fetchJson(
  fetch: Fetch,
  url: string,
  timeout: number,
  init: RequestInit = {},
): Promise<{ response: Response; body: unknown }> {
  const response = await fetch(url, {
    ...init,
    headers: { accept: 'application/json', ...init.headers },
    // `error` would say it more plainly, but Cloudflare's workers refuse it.
    redirect: 'manual',
    signal: AbortSignal.timeout(timeout),
  })
  return { response, body: await readJson(response) }
}

async function readJson(response: Response): Promise<unknown> {
  const reader = response.body?.getReader()
  if (!reader) return undefined
  const decoder = new TextDecoder()
  let text = ''
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read()
    if (done) break
    bytes += value.byteLength
    if (bytes > MAX_BYTES) {
      await reader.cancel()
      return undefined
    }
    text += decoder.decode(value, { stream: true })
  }
  try {
    return JSON.parse(text + decoder.decode())
  } catch {
    return undefined
  }
}
