// Comfort only: every page works without it.
for (const button of document.querySelectorAll('.reveal')) {
  const input = document.getElementById(button.getAttribute('aria-controls'))
  const show = visible => {
    input.type = visible ? 'text' : 'password'
    button.setAttribute('aria-pressed', String(visible))
  }
  button.hidden = false
  button.addEventListener('click', () => show(input.type === 'password'))
  // A browser must never remember the password as ordinary text.
  input.form.addEventListener('submit', () => show(false))
}

// Forms that a passkey answers: the credential is asked for when they are sent, or as soon as one is picked from the autofill.
const passkeys = globalThis.PublicKeyCredential
if (passkeys?.parseRequestOptionsFromJSON)
  for (const form of document.querySelectorAll('form[data-passkey]')) {
    const { passkey: act, options, autofill } = form.dataset
    const isCreating = act === 'create'
    const publicKey = isCreating
      ? passkeys.parseCreationOptionsFromJSON(JSON.parse(options))
      : passkeys.parseRequestOptionsFromJSON(JSON.parse(options))
    const part = name => form.querySelector(`[data-passkey-${name}]`)
    let asking
    const ask = async mediation => {
      asking?.abort()
      asking = new AbortController()
      const credential = await navigator.credentials[act]({
        publicKey,
        signal: asking.signal,
        ...(mediation && { mediation }),
      })
      form.elements.credential.value = JSON.stringify(credential)
      form.submit()
    }
    form.querySelector('button').hidden = false
    part('missing')?.remove()
    form.addEventListener('submit', event => {
      event.preventDefault()
      event.stopImmediatePropagation()
      part('failed').hidden = true
      ask().catch(() => {
        part('failed').hidden = false
      })
    })
    if (autofill !== undefined)
      passkeys
        .isConditionalMediationAvailable?.()
        .then(isThere => isThere && ask('conditional'))
        .catch(() => {})
  }

for (const form of document.forms) {
  form.addEventListener('submit', event => {
    if (form.ariaBusy === 'true') event.preventDefault()
    // A download leaves the page as it is, to be asked for again.
    form.ariaBusy = String(!('again' in form.dataset))
  })
}

// A page that comes back from the history is ready to be sent again.
addEventListener('pageshow', () => {
  for (const form of document.forms) form.ariaBusy = null
})
