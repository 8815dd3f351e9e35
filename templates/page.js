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

for (const form of document.forms) {
  form.addEventListener('submit', event => {
    if (form.ariaBusy === 'true') event.preventDefault()
    form.ariaBusy = 'true'
  })
}

// A page that comes back from the history is ready to be sent again.
addEventListener('pageshow', () => {
  for (const form of document.forms) form.ariaBusy = null
})
