// This script adds convenience; every page works without it.
// The cookie tells the server the user's time zone, which is used for times in mail about the account.
document.cookie = `time_zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}; path=/; max-age=34560000; samesite=lax`
document.querySelector('.tab[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' })
for (const button of document.querySelectorAll('.reveal')) {
  const input = document.getElementById(button.getAttribute('aria-controls'))
  const show = visible => {
    input.type = visible ? 'text' : 'password'
    button.setAttribute('aria-pressed', String(visible))
  }
  button.hidden = false
  button.addEventListener('click', () => show(input.type === 'password'))
  // Browsers remember the values of text fields, so the field becomes a password field again before the form
  // is submitted.
  input.form.addEventListener('submit', () => show(false))
}

// The rules of src/directory/users/password.ts. Only the server checks for common passwords.
const rules = {
  min_length: (text, count) => [...text].length >= count,
  require_uppercase: text => /\p{Lu}/u.test(text),
  require_lowercase: text => /\p{Ll}/u.test(text),
  require_digit: text => /\p{Nd}/u.test(text),
  require_special: text => /[^\p{L}\p{N}]/u.test(text),
}
for (const list of document.querySelectorAll('.rules')) {
  const input = document.querySelector('[aria-describedby~="rules"]')
  input.addEventListener('input', () => {
    const text = input.value.normalize('NFC')
    for (const item of list.querySelectorAll('li')) {
      const isMet = rules[item.dataset.rule]?.(text, Number(item.dataset.count))
      item.className = isMet ? 'met' : ''
      item.querySelector('.unseen').textContent = isMet ? list.dataset.met : ''
    }
  })
}

// Counts down the seconds of `data-wait` on the buttons, outside of live regions, so that screen readers do
// not read each number aloud. On the page of a refused GET, the link that repeats the request counts down.
for (const notice of document.querySelectorAll('[data-wait]')) {
  const until = Date.now() + notice.dataset.wait * 1000
  const isLink = notice.matches('a')
  const buttons = isLink ? [notice] : notice.parentElement.querySelectorAll('form button.primary')
  const count = () => {
    const left = Math.ceil((until - Date.now()) / 1000)
    for (const button of buttons) {
      if (isLink) button.ariaDisabled = String(left > 0)
      else button.disabled = left > 0
      if (left > 0) button.dataset.left = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`
      else delete button.dataset.left
    }
    if (left > 0) setTimeout(count, 250)
    else notice.hidden = !isLink
  }
  if (isLink)
    notice.addEventListener('click', event => notice.ariaDisabled === 'true' && event.preventDefault())
  count()
}

for (const button of document.querySelectorAll('[data-copy]')) {
  const { copy, copied } = button.dataset
  // Browsers have a clipboard only on https and localhost.
  button.hidden = !navigator.clipboard
  button.addEventListener('click', async () => {
    const texts = Array.from(
      document.querySelectorAll(`#${copy} code`),
      code => code.dataset.text ?? code.textContent,
    )
    await navigator.clipboard.writeText(texts.join('\n'))
    button.textContent = copied
  })
}

for (const button of document.querySelectorAll('[data-print]')) {
  button.hidden = false
  button.addEventListener('click', () => print())
}

// Converts to and from the JSON of https://www.w3.org/TR/webauthn-3/, because browsers had passkeys for years
// before they had functions for this JSON.
const bytesOf = text =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), letter => letter.charCodeAt(0))
const textOf = bytes =>
  btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
const parseOptions = json => {
  const { user, allowCredentials, excludeCredentials, ...options } = JSON.parse(json)
  const named = credential => ({ ...credential, id: bytesOf(credential.id) })
  return {
    ...options,
    challenge: bytesOf(options.challenge),
    ...(user && { user: named(user) }),
    ...(allowCredentials && { allowCredentials: allowCredentials.map(named) }),
    ...(excludeCredentials && { excludeCredentials: excludeCredentials.map(named) }),
  }
}
const answerOf = ({ id, type, response }) => {
  const answer = { transports: response.getTransports?.() }
  for (const part of ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle'])
    if (response[part]) answer[part] = textOf(response[part])
  return JSON.stringify({ id, rawId: id, type, response: answer, clientExtensionResults: {} })
}

// A submitted form is busy until its load is stopped or the page returns from the back-forward cache, but at
// most for ten seconds, because no event shows that the answer led to an app and the page stays.
let lapse, heldAt
const held = new Set()
const release = () => {
  for (const form of held) form.ariaBusy = null
  held.clear()
}
const hold = form => {
  held.add(form)
  form.ariaBusy = 'true'
  heldAt = performance.now()
  clearTimeout(lapse)
  lapse = setTimeout(release, 10_000)
}
addEventListener('pageshow', ({ persisted }) => persisted && release())
// A form that replaces a running load stops this load at once, and stays busy.
globalThis.navigation?.addEventListener('navigateerror', () => performance.now() - heldAt > 200 && release())

// A form with `data-passkey` requests a credential when the form is submitted, or when the user picks a
// passkey from autofill.
const passkeys = globalThis.PublicKeyCredential
// After a login with a password, the server offers to add a passkey only if this cookie shows that the device
// supports passkeys.
passkeys?.isUserVerifyingPlatformAuthenticatorAvailable?.().then(isThere => {
  document.cookie = `passkeys=1; path=/; max-age=${isThere ? 34560000 : 0}; samesite=lax`
})
if (passkeys)
  for (const form of document.querySelectorAll('form[data-passkey]')) {
    const { passkey: act, options, autofill } = form.dataset
    const publicKey = parseOptions(options)
    const part = name => form.querySelector(`[data-passkey-${name}]`)
    // The page has one checkbox for the terms, in the password form. The script moves the checkbox to the
    // passkey form before it submits that form.
    const terms = document.getElementById('accept')
    let asking, created
    const ask = async mediation => {
      asking?.abort()
      asking = new AbortController()
      const credential =
        created ??
        (await navigator.credentials[act]({
          publicKey,
          signal: asking.signal,
          ...(mediation && { mediation }),
        }))
      // Another new passkey would replace this one on the device, but the server may have stored this one.
      if (act === 'create') created = credential
      form.elements.credential.value = answerOf(credential)
      terms?.setAttribute('form', form.id)
      hold(form)
      form.submit()
    }
    form.querySelector('button').hidden = false
    part('missing')?.remove()
    form.addEventListener('submit', event => {
      event.preventDefault()
      event.stopImmediatePropagation()
      if (form.ariaBusy === 'true') return
      if (terms?.reportValidity() === false) return
      for (const told of form.querySelectorAll('[data-passkey-failed], [data-passkey-known]'))
        told.hidden = true
      const answer = ask()
      const mine = asking
      answer.catch(({ name }) => {
        // Another press of the button has replaced this request.
        if (asking !== mine) return
        const told = (name === 'InvalidStateError' && part('known')) || part('failed')
        told.hidden = false
        fill()
      })
    })
    const fill = () =>
      autofill !== undefined &&
      passkeys
        .isConditionalMediationAvailable?.()
        .then(isThere => isThere && ask('conditional'))
        .catch(() => {})
    fill()
  }

// Keeps the typed organization when the user chooses another language.
const choosing = document.querySelector('.languages')
choosing?.addEventListener('submit', () => {
  const [{ page }, typed] = [choosing.elements, document.querySelector('input[name=organization]')]
  if (!page || !typed) return
  const url = new URL(page.value, location)
  url.searchParams.set('organization', typed.value)
  page.value = url.pathname + url.search
})

for (const form of document.forms) {
  form.addEventListener('submit', event => {
    if (form.ariaBusy === 'true') event.preventDefault()
    // After a download the page stays open, so its form may be submitted again.
    else if (!('again' in form.dataset)) hold(form)
  })
}

// Submits, without a click, the form that takes the answer to a client.
document.querySelector('form[data-send]')?.requestSubmit()

// Returns the photo as a square of at most 512 pixels, and applies the orientation in its metadata. Without
// this step the server would refuse a large photo. The square becomes a JPEG if it exceeds the 256 KiB that
// the server accepts, as a PNG can.
const squareOf = async file => {
  const image = await createImageBitmap(file)
  const side = Math.min(image.width, image.height)
  const size = Math.min(side, 512)
  const canvas = Object.assign(document.createElement('canvas'), { width: size, height: size })
  const [x, y] = [(image.width - side) / 2, (image.height - side) / 2]
  const context = canvas.getContext('2d')
  context.drawImage(image, x, y, side, side, 0, 0, size, size)
  const blobOf = type => new Promise(resolve => canvas.toBlob(resolve, type, 0.9))
  const blob = await blobOf(file.type)
  if (!(blob?.size > 262_144)) return blob
  // Without this background, the transparent parts become black in a JPEG.
  Object.assign(context, { globalCompositeOperation: 'destination-over', fillStyle: '#fff' })
  context.fillRect(0, 0, size, size)
  return blobOf('image/jpeg')
}

for (const form of document.querySelectorAll('[data-picture]')) {
  const input = form.elements.picture
  let pressed
  form.addEventListener('submit', ({ defaultPrevented, submitter }) => {
    pressed = defaultPrevented && submitter
  })
  input.addEventListener('change', async () => {
    const [file] = input.files
    // The form waits, because the original may be too large for the server, and is sent after the crop.
    pressed = undefined
    form.ariaBusy = file ? 'true' : null
    const blob = file && (await squareOf(file).catch(() => undefined))
    if (input.files[0] !== file) return
    form.ariaBusy = null
    if (blob) {
      const chosen = new DataTransfer()
      chosen.items.add(new File([blob], file.name, { type: blob.type }))
      input.files = chosen.files
    }
    if (pressed) form.requestSubmit(pressed)
  })
}
