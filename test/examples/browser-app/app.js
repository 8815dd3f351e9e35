// The authorization code flow with PKCE, without a library: https://www.rfc-editor.org/rfc/rfc7636
const { issuer, client_id } = await (await fetch('/config.json')).json()
const discovery = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json()
const redirect_uri = `${location.origin}/callback`

const encode = bytes =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
const random = () => encode(crypto.getRandomValues(new Uint8Array(32)))

const logIn = async () => {
  const [state, verifier] = [random(), random()]
  sessionStorage.setItem('flow', JSON.stringify({ state, verifier }))
  const challenge = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  const parameters = { response_type: 'code', client_id, redirect_uri, scope: 'openid profile email', state }
  const query = new URLSearchParams({
    ...parameters,
    code_challenge: encode(challenge),
    code_challenge_method: 'S256',
  })
  location.assign(`${discovery.authorization_endpoint}?${query}`)
}

/** The URL of the callback contains the code. `state` and `iss` must be the values of the request. */
const finish = async answer => {
  const { state, verifier } = JSON.parse(sessionStorage.getItem('flow') ?? '{}')
  sessionStorage.removeItem('flow')
  if (answer.get('state') !== state || answer.get('iss') !== issuer)
    throw new Error('this answer is not ours')
  if (answer.has('error')) throw new Error(answer.get('error_description'))
  const form = { grant_type: 'authorization_code', client_id, redirect_uri, code_verifier: verifier }
  const body = new URLSearchParams({ ...form, code: answer.get('code') })
  const tokens = await (await fetch(discovery.token_endpoint, { method: 'POST', body })).json()
  const headers = { authorization: `Bearer ${tokens.access_token}` }
  return (await fetch(discovery.userinfo_endpoint, { headers })).json()
}

if (location.pathname === '/callback') {
  const user = await finish(new URLSearchParams(location.search))
  history.replaceState(null, '', '/')
  document.querySelector('#user').textContent = `Hello ${user.name}`
} else {
  const button = document.querySelector('#sign-in')
  button.hidden = false
  button.addEventListener('click', logIn)
}
