import { type ProgramRow, programs, verbs } from '../behaviour.ts';

/** Package managers of systems. */
export const PACKAGES: readonly ProgramRow[] = [
  ...programs(
    'apt apt-get aptitude dnf yum zypper pacman apk brew snap flatpak nix nix-env nix-shell nix-build guix port emerge pkg xbps-install opkg microdnf',
    'high',
    'network',
    {
      operands: 'none',
      needs: 'system',
      verbs: verbs('list search show info policy', { risk: 'low', reach: 'network', needs: 'nothing' }),
    },
  ),
  ...programs(
    'dpkg rpm apt-key add-apt-repository update-alternatives debconf-set-selections dpkg-reconfigure',
    'high',
    'unknown',
    { operands: 'guess' },
  ),
  ...programs('dpkg-query apt-cache apt-mark apt-file', 'low', 'unknown', { operands: 'none' }),
  ...programs('gem', 'medium', 'network', {
    operands: 'none',
    verbs: verbs('list search info which environment', { risk: 'low' }),
  }),
  ...programs('cpan cpanm pear pecl tlmgr asdf mise sdk proto', 'medium', 'network', { operands: 'none' }),
];
