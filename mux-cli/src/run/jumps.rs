//! The way to each target, by `ProxyJump` and `ProxyCommand`: which jump hosts stand before it, each with a configuration
//! of its own, and which of them are one and the same for several targets. Decides as if `ssh` ran `ssh` for each stop,
//! which is what it does; connects to nothing.
//!
//! What is typed for the targets (`-o`, `-i`, `-l`, `-p`) is not for jump hosts, the files are. The first stop of a list
//! may lie behind others by its own configuration; each further one is reached through the stop before it, whatever its
//! own configuration says.

use std::collections::HashMap;
use std::sync::Arc;

use mux_ssh::Printable;
use mux_ssh::config::{HostConfig, JumpHost, Origin, Proxy, Sourced};

use super::config::Configuration;
use super::fallback;
use super::settings::{Here, Prepared, Settings, Work};
use super::unsupported;
use crate::hub::{RequestId, Route};
use crate::plan::{Connection, Plan};

/// More stops than this in a row by their own configurations are no way but a mistake: names that each lead to a new one,
/// by tokens.
const MAX_STOPS: usize = 32;

/// Who a stop is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Spot {
    address: String,
    port: u16,
    user: String,
}

/// Why there is no way to a target; one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoWay {
    /// A stop asks for something that only the system's ssh can do.
    Unsupported(String),
    /// No program can do it.
    Wrong(String),
}

/// A host as it is named on the way: two names for the same address may well be two machines, in two networks.
type Named = (String, Spot);

/// The jump hosts of a run.
#[derive(Debug)]
pub(super) struct Jumps<'a> {
    plan: &'a Plan,
    /// Read when it is needed: most runs jump nowhere.
    configuration: Option<Configuration>,
    settings: Settings,
    first: usize,
    hops: Vec<Prepared>,
    /// Those that were asked for before: the same words behind the same stop.
    known: HashMap<(JumpHost, Option<Route>), Result<RequestId, NoWay>>,
    by_spot: HashMap<(Spot, Route), Vec<usize>>,
}

impl<'a> Jumps<'a> {
    /// For so many targets; jump hosts are numbered behind them.
    pub(super) fn new(plan: &'a Plan, targets: usize) -> Self {
        Self {
            plan,
            configuration: None,
            settings: Settings::default(),
            first: targets,
            hops: Vec::new(),
            known: HashMap::new(),
            by_spot: HashMap::new(),
        }
    }

    /// Takes the way out of a target's configuration; also in words, by which it is told from others.
    ///
    /// # Errors
    /// A stop that can't be used, or one that leads to itself.
    pub(super) fn way(&mut self, config: &mut HostConfig) -> Result<(Route, String), NoWay> {
        let proxy = config.proxy.take();
        let end = (config.host.to_lowercase(), spot(config));
        let route = self.route(proxy.as_ref(), &end, &mut Vec::new())?;
        let words = self.words(&route);
        Ok((route, words))
    }

    /// Every jump host once, those that others are reached through before them.
    pub(super) fn into_hops(self) -> Vec<Prepared> {
        self.hops
    }

    fn words(&self, route: &Route) -> String {
        match route {
            Route::Direct => String::new(),
            Route::Command(line) => format!("|{line}"),
            Route::Jump(id) => {
                let hop = self.hops.get(self.index(*id));
                let hop = hop.expect("it was numbered as it was added");
                let Spot { address, port, user } = spot_of(hop);
                let before = if hop.way.is_empty() { "" } else { "," };
                format!("{}{before}{user}@{address}:{port}", hop.way)
            }
        }
    }

    /// The way to `end` by these lines of its configuration. `behind`: stops whose own configuration led here.
    fn route(
        &mut self,
        proxy: Option<&Sourced<Proxy>>,
        end: &Named,
        behind: &mut Vec<Named>,
    ) -> Result<Route, NoWay> {
        let Some(proxy) = proxy else {
            return Ok(Route::Direct);
        };
        let stops = match &proxy.value {
            Proxy::Command(line) => return Ok(Route::Command(Arc::from(line.as_str()))),
            Proxy::Jump(stops) => stops,
        };
        let mut before = None;
        for stop in stops {
            before = Some(Route::Jump(self.hop(stop, before, &proxy.origin, behind)?));
        }
        let last = before.as_ref().and_then(|route| match route {
            Route::Jump(id) => self.hops.get(self.index(*id)),
            Route::Direct | Route::Command(_) => None,
        });
        let last = stops.last().zip(last);
        let last = last.map(|(stop, hop)| (stop.host.to_lowercase(), spot_of(hop)));
        match last.as_ref() == Some(end) {
            true => Err(leads_back(&proxy.origin, &end.0)),
            false => Ok(before.unwrap_or_default()),
        }
    }

    /// One stop of a list, behind the one before it.
    fn hop(
        &mut self,
        stop: &JumpHost,
        before: Option<Route>,
        origin: &Origin,
        behind: &mut Vec<Named>,
    ) -> Result<RequestId, NoWay> {
        let name = (stop.clone(), before);
        if let Some(known) = self.known.get(&name) {
            return known.clone();
        }
        let found = self.find(stop, name.1.clone(), origin, behind);
        self.known.insert(name, found.clone());
        found
    }

    fn find(
        &mut self,
        stop: &JumpHost,
        before: Option<Route>,
        origin: &Origin,
        behind: &mut Vec<Named>,
    ) -> Result<RequestId, NoWay> {
        let named = |text: &str| format!("via {}: {text}", Printable::new(&stop.host));
        let plan = self.plan;
        let configuration = self
            .configuration
            .get_or_insert_with(|| Configuration::new(&of_stops(&plan.connection)));
        let mut config = configuration
            .stop(stop)
            .map_err(|error| match fallback::can_take(&error) {
                true => NoWay::Unsupported(named(&error.to_string())),
                false => NoWay::Wrong(named(&error.to_string())),
            })?;
        let spot = spot(&config);
        let this = (stop.host.to_lowercase(), spot.clone());
        if behind.contains(&this) || behind.len() >= MAX_STOPS {
            return Err(leads_back(origin, &stop.host));
        }
        if before.is_some() {
            // The stop before it stands in the place of whatever its own configuration says.
            config.proxy = None;
        }
        let unsupported = |text: String| NoWay::Unsupported(named(&text));
        unsupported::refuse(&config).map_err(unsupported)?;
        let own = config.proxy.take();
        let route = match before {
            Some(route) => route,
            None => {
                behind.push(this.clone());
                let route = self.route(own.as_ref(), &this, behind);
                behind.pop();
                route?
            }
        };
        let configuration = self.configuration.as_mut().expect("it was made above");
        let source = configuration.source(&config, &route);
        let here = Here {
            source: source.map_err(|text| NoWay::Wrong(named(&text)))?,
            ..Here::default()
        };
        self.add(spot, route, config, here).map_err(unsupported)
    }

    /// A jump host with this configuration: the same as before if all of it is the same.
    fn add(&mut self, spot: Spot, route: Route, config: HostConfig, here: Here) -> Result<RequestId, String> {
        let id = self.first + self.hops.len();
        let id = RequestId(u32::try_from(id).map_err(|_| "too many hosts".to_owned())?);
        let mut new = self.settings.prepare(id, self.plan, Work::none(), config, here)?;
        new.way = self.words(&route);
        new.request.route = route.clone();
        new.request.stdin = false;
        new.request.command_timeout = None;
        let same = self.by_spot.entry((spot, route)).or_default();
        let known = same
            .iter()
            .find(|index| self.hops.get(**index).is_some_and(|hop| hop.is_same(&new)));
        if let Some(hop) = known.and_then(|index| self.hops.get(*index)) {
            return Ok(hop.request.id);
        }
        same.push(self.hops.len());
        self.hops.push(new);
        Ok(id)
    }

    fn index(&self, id: RequestId) -> usize {
        usize::try_from(id.0).map_or(usize::MAX, |id| id.wrapping_sub(self.first))
    }
}

/// What is typed for the targets is not for the stops before them; the files, and what is not ssh's, are.
fn of_stops(connection: &Connection) -> Connection {
    let mut stops = connection.clone();
    stops.user = None;
    stops.port = None;
    stops.identities.clear();
    stops.options.clear();
    stops
}

fn spot(config: &HostConfig) -> Spot {
    Spot {
        address: config.hostname.value.clone(),
        port: config.port.value,
        user: config.user.value.clone(),
    }
}

fn spot_of(hop: &Prepared) -> Spot {
    Spot {
        address: hop.request.address.clone(),
        port: hop.request.port,
        user: hop.request.user.clone(),
    }
}

fn leads_back(origin: &Origin, host: &str) -> NoWay {
    let host = Printable::new(host);
    let advice = match origin {
        Origin::CommandLine | Origin::Default => String::new(),
        Origin::File { .. } => format!("; a `ProxyJump none` for {host}, before this line, ends that"),
    };
    NoWay::Wrong(format!(
        "{origin}: ProxyJump leads from {host} back to {host}{advice}"
    ))
}
