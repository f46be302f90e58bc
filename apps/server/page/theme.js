// SPDX-License-Identifier: Apache-2.0
// Light or dark: as the system says, or as the user chose.

const kChoices = ['system', 'light', 'dark'];

export function followTheme(button) {
  const system = matchMedia('(prefers-color-scheme: dark)');
  let choice = localStorage.getItem('foretoken.theme') ?? 'system';
  const apply = () => {
    const dark = choice === 'dark' || (choice === 'system' && system.matches);
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
    button.textContent = `Theme: ${choice}`;
  };
  system.addEventListener('change', apply);
  button.addEventListener('click', () => {
    choice = kChoices[(kChoices.indexOf(choice) + 1) % kChoices.length];
    localStorage.setItem('foretoken.theme', choice);
    apply();
  });
  apply();
}
